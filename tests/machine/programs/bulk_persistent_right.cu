// A block that works on many rows: one buffer is loaded in bulk again after a barrier, results leave from two buffers in turn,
// each written again once all but the newest bulk group have read their source. The map of the last copy lies in constant
// memory.
#include <cstdint>

#include <cuda/ptx>

#include "tensor_map.cuh"

namespace ptx = cuda::ptx;

constexpr int kCount = 64, kRows = 9;

__constant__ CUtensorMap last_row;

__device__ void wait(uint64_t* bar, unsigned parity) {
  while (!ptx::mbarrier_try_wait_parity(bar, parity)) {
  }
}

__global__ void rows(const int* in, int* out) {
  __shared__ alignas(128) int row[kCount], result[2][kCount];
  __shared__ uint64_t bar;
  const int i = static_cast<int>(threadIdx.x);
  if (i == 0) {
    ptx::mbarrier_init(&bar, 1);
    ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
  }
  __syncthreads();
  for (int k = 0; k < kRows; ++k) {
    if (i == 0) {
      ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &bar, sizeof row);
      const int at[] = {0};
      if (k + 1 < kRows) ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, row, in + k * kCount, sizeof row, &bar);
      else ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, row, &last_row, at, &bar);
      ptx::cp_async_bulk_wait_group_read(ptx::n32_t<1>{});
    }
    wait(&bar, k & 1);
    __syncthreads();
    result[k % 2][i] = row[i] + row[(i + 1) % kCount];
    ptx::fence_proxy_async(ptx::space_shared);
    __syncthreads();
    if (i == 0) {
      ptx::cp_async_bulk(ptx::space_global, ptx::space_shared, out + k * kCount, result[k % 2], sizeof row);
      ptx::cp_async_bulk_commit_group();
    }
  }
  if (i == 0) ptx::cp_async_bulk_wait_group(ptx::n32_t<0>{});
}

int main() {
  int *in, *out, host[kRows][kCount], back[kRows][kCount];
  for (int i = 0; i < kRows * kCount; ++i) host[i / kCount][i % kCount] = i * i;
  REQUIRE(cudaMalloc(&in, sizeof host));
  REQUIRE(cudaMalloc(&out, sizeof host));
  REQUIRE(cudaMemcpy(in, host, sizeof host, cudaMemcpyHostToDevice));
  const cuuint64_t sizes[] = {kCount};
  const cuuint32_t box[] = {kCount};
  const CUtensorMap map = tensor_map(CU_TENSOR_MAP_DATA_TYPE_INT32, 4, 1, in + (kRows - 1) * kCount, sizes, box);
  REQUIRE(cudaMemcpyToSymbol(last_row, &map, sizeof map));
  rows<<<1, kCount>>>(in, out);
  REQUIRE(cudaMemcpy(back, out, sizeof back, cudaMemcpyDeviceToHost));
  for (int k = 0; k < kRows; ++k)
    for (int i = 0; i < kCount; ++i)
      if (back[k][i] != host[k][i] + host[k][(i + 1) % kCount]) return 4;
  return 0;
}
