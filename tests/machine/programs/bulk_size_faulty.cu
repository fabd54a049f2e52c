// A bulk copy of a size that is no multiple of 16.
#include <cstdint>

#include <cuda/ptx>

#include "require.cuh"

namespace ptx = cuda::ptx;

constexpr int kCount = 256;

__global__ void rows(const int* in, int* out) {
  __shared__ alignas(16) int row[kCount];
  __shared__ uint64_t bar;
  if (threadIdx.x == 0) ptx::mbarrier_init(&bar, blockDim.x);
  __syncthreads();
  if (threadIdx.x == 0) {
    ptx::fence_proxy_async(ptx::space_shared);
    ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, row, in + blockIdx.x * kCount, sizeof row, &bar);
    ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &bar, sizeof row);
  } else {
    ptx::mbarrier_arrive(&bar);
  }
  while (!ptx::mbarrier_try_wait_parity(&bar, 0)) {
  }
  for (int i = threadIdx.x; i < kCount; i += blockDim.x) row[i] += i;
  ptx::fence_proxy_async(ptx::space_shared);
  __syncthreads();
  if (threadIdx.x == 0) {
    ptx::cp_async_bulk(ptx::space_global, ptx::space_shared, out + blockIdx.x * kCount, row, sizeof row - 4);  // @finding
    ptx::cp_async_bulk_commit_group();
    ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>{});
  }
  __syncthreads();
  row[threadIdx.x] = -1;
}

int main() {
  int *in, *out, host[4 * kCount], back[4 * kCount];
  for (int i = 0; i < 4 * kCount; ++i) host[i] = 3 * i;
  REQUIRE(cudaMalloc(&in, sizeof host));
  REQUIRE(cudaMalloc(&out, sizeof host));
  REQUIRE(cudaMemcpy(in, host, sizeof host, cudaMemcpyHostToDevice));
  rows<<<4, 64>>>(in, out);
  REQUIRE(cudaMemcpy(back, out, sizeof back, cudaMemcpyDeviceToHost));
  for (int i = 0; i < 4 * kCount; ++i)
    if (back[i] != 3 * i + i % kCount) return 4;
  return 0;
}
