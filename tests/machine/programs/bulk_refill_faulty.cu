// A stage is filled again before its readers have arrived: the producer waits for the readers of the round before the last.
#include <cstdint>

#include <cuda/ptx>

#include "require.cuh"

namespace ptx = cuda::ptx;

constexpr int kStages = 2, kRounds = 6, kReaders = 32;

__device__ void wait(uint64_t* bar, unsigned parity) {
  while (!ptx::mbarrier_try_wait_parity(bar, parity)) {
  }
}

__global__ void ring(const int* in, int* out) {
  __shared__ alignas(16) int stage[kStages][kReaders];
  __shared__ uint64_t full[kStages], empty[kStages];
  if (threadIdx.x == 0) {
    for (int s = 0; s < kStages; ++s) ptx::mbarrier_init(&full[s], 1), ptx::mbarrier_init(&empty[s], kReaders);
    ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
  }
  __syncthreads();
  if (threadIdx.x < 32) {
    if (threadIdx.x == 0)
      for (int k = 0; k < kRounds; ++k) {
        const int s = k % kStages;
        if (k >= 2 * kStages) wait(&empty[s], k / kStages & 1);
        ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &full[s], sizeof stage[s]);
        ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, stage[s], in + k * kReaders, sizeof stage[s], &full[s]);  // @finding
      }
    return;
  }
  const int lane = static_cast<int>(threadIdx.x) % 32;
  for (int k = 0; k < kRounds; ++k) {
    const int s = k % kStages;
    wait(&full[s], k / kStages & 1);
    out[k * kReaders + lane] = stage[s][lane ^ 1];
    ptx::mbarrier_arrive(&empty[s]);
  }
}

int main() {
  int *in, *out, host[kRounds * kReaders], back[kRounds * kReaders];
  for (int i = 0; i < kRounds * kReaders; ++i) host[i] = i;
  REQUIRE(cudaMalloc(&in, sizeof host));
  REQUIRE(cudaMalloc(&out, sizeof host));
  REQUIRE(cudaMemcpy(in, host, sizeof host, cudaMemcpyHostToDevice));
  ring<<<1, 64>>>(in, out);
  REQUIRE(cudaMemcpy(back, out, sizeof back, cudaMemcpyDeviceToHost));
  for (int i = 0; i < kRounds * kReaders; ++i)
    if (back[i] != (i ^ 1)) return 4;
  return 0;
}
