// In shared memory, a 32-bit atomic on half of what a 64-bit compare-and-swap of another warp may be changing.
#include "require.cuh"

__global__ void count(unsigned long long* out) {
  __shared__ unsigned long long both;
  if (threadIdx.x == 0) both = 0;
  __syncthreads();
  auto* halves = reinterpret_cast<unsigned*>(&both);
  if (threadIdx.x < 32) atomicAdd(&halves[0], 1u);  // @finding
  else atomicMax(&both, 7ull);  // @other
  __syncthreads();
  if (threadIdx.x == 0) *out = both;
}

int main() {
  unsigned long long* out;
  REQUIRE(cudaMalloc(&out, sizeof *out));
  count<<<1, 64>>>(out);
  REQUIRE(cudaDeviceSynchronize());
  return 0;
}
