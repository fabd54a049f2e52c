// Atomics of several widths on the same bytes, with a barrier or a launch between them; on neighbouring bytes; and packed and
// vector atomics, which are atomic to each of their values only.
#include "require.cuh"

#include <cuda_fp16.h>

__global__ void count(unsigned long long* both, unsigned* sums, __half2* pairs) {
  __shared__ unsigned long long word;
  auto* halves = reinterpret_cast<unsigned*>(&word);
  if (threadIdx.x == 0) word = 0;
  __syncthreads();
  atomicAdd(&halves[threadIdx.x % 2], 1u);
  __syncthreads();
  atomicAdd(&word, 1ull);
  __syncthreads();
  atomicAdd(&both[blockIdx.x % 2], 1ull);
  atomicAdd(&sums[blockIdx.x % 4], 1u);
  atomicAdd(&pairs[0], __floats2half2_rn(1.0f, 1.0f));
  atomicAdd(reinterpret_cast<__half*>(pairs), __float2half(1.0f));
}

__global__ void add_halves(unsigned long long* both) { atomicAdd(reinterpret_cast<unsigned*>(both) + threadIdx.x % 4, 1u); }

int main() {
  struct Memory {
    unsigned long long both[2];
    unsigned sums[4];
    __half2 pairs[2];
  };
  Memory* memory;
  REQUIRE(cudaMalloc(&memory, sizeof *memory));
  REQUIRE(cudaMemset(memory, 0, sizeof *memory));
  count<<<4, 64>>>(memory->both, memory->sums, memory->pairs);
  add_halves<<<2, 64>>>(memory->both);
  Memory host;
  REQUIRE(cudaMemcpy(&host, memory, sizeof host, cudaMemcpyDeviceToHost));
  return host.both[0] == (32ull << 32) + 160 && host.sums[3] == 64 ? 0 : 4;
}
