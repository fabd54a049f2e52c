// The producer waits with a parity that changes once a trip round the ring, for an mbarrier whose phase changes with every stage.
#include <cstdint>

#include "require.cuh"

constexpr int kStages = 3, kRounds = 14;

__device__ unsigned at(const uint64_t* b) { return static_cast<unsigned>(__cvta_generic_to_shared(b)); }
__device__ void begin(uint64_t* b) { asm volatile("mbarrier.init.shared.b64 [%0], 32;" ::"r"(at(b)) : "memory"); }
__device__ void arrive(uint64_t* b) {
  asm volatile("{ .reg .b64 t; mbarrier.arrive.shared.b64 t, [%0]; }" ::"r"(at(b)) : "memory");
}
__device__ void wait(uint64_t* b, unsigned parity) {
  asm volatile("{ .reg .pred p;\nL%=: mbarrier.try_wait.parity.shared.b64 p, [%0], %1;\n@!p bra L%=; }" ::"r"(at(b)),
               "r"(parity)
               : "memory");
}

__global__ void pipe(const int* in, int* out) {
  __shared__ int stage[kStages][32];
  __shared__ uint64_t full[kStages], free_again;
  const int lane = threadIdx.x % 32;
  if (threadIdx.x == 0) {
    for (auto& b : full) begin(&b);
    begin(&free_again);
  }
  __syncthreads();
  if (threadIdx.x < 32) {
    for (int k = 0; k < kRounds; ++k) {
      if (k >= kStages) wait(&free_again, (k - kStages) / kStages & 1);
      stage[k % kStages][lane] = in[k * 32 + lane];
      arrive(&full[k % kStages]);
    }
  } else {
    for (int k = 0; k < kRounds; ++k) {
      wait(&full[k % kStages], k / kStages & 1);
      out[k * 32 + lane] = stage[k % kStages][lane ^ 1];
      arrive(&free_again);
    }
  }
}

int main() {
  int *in, *out, host[kRounds * 32], back[kRounds * 32];
  for (int i = 0; i < kRounds * 32; ++i) host[i] = i;
  REQUIRE(cudaMalloc(&in, sizeof host));
  REQUIRE(cudaMalloc(&out, sizeof host));
  REQUIRE(cudaMemcpy(in, host, sizeof host, cudaMemcpyHostToDevice));
  pipe<<<1, 64>>>(in, out);
  cudaMemcpy(back, out, sizeof back, cudaMemcpyDeviceToHost);
  return 0;
}
