// The tensor map is a plain parameter: the kernel copies its own copy to local memory, and that is no place for one.
#include <cstdint>

#include <cuda/ptx>

#include "tensor_map.cuh"

namespace ptx = cuda::ptx;

constexpr int kWidth = 40, kHeight = 19, kTileWidth = 16, kTileHeight = 8;

__global__ void twice(CUtensorMap in, const __grid_constant__ CUtensorMap out) {
  __shared__ alignas(128) int tile[kTileHeight][kTileWidth];
  __shared__ uint64_t bar;
  const int at[] = {static_cast<int>(blockIdx.x) * kTileWidth, static_cast<int>(blockIdx.y) * kTileHeight};
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(&bar, 1);
    ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
    ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &bar, sizeof tile);
    ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, tile, &in, at, &bar);  // @finding
  }
  __syncthreads();
  while (!ptx::mbarrier_try_wait_parity(&bar, 0)) {
  }
  for (int i = threadIdx.x; i < kTileHeight * kTileWidth; i += blockDim.x) {
    int& v = tile[i / kTileWidth][i % kTileWidth];
    const bool outside = at[0] + i % kTileWidth >= kWidth || at[1] + i / kTileWidth >= kHeight;
    v = outside && v != 0 ? -1 : 2 * v;
  }
  ptx::fence_proxy_async(ptx::space_shared);
  __syncthreads();
  if (threadIdx.x == 0) {
    ptx::cp_async_bulk_tensor(ptx::space_global, ptx::space_shared, &out, at, tile);
    ptx::cp_async_bulk_commit_group();
    ptx::cp_async_bulk_wait_group(ptx::n32_t<0>{});
  }
}

int main() {
  int *in, *out, host[kHeight][kWidth], back[kHeight][kWidth];
  for (int i = 0; i < kHeight * kWidth; ++i) host[i / kWidth][i % kWidth] = i + 1;
  REQUIRE(cudaMalloc(&in, sizeof host));
  REQUIRE(cudaMalloc(&out, sizeof host));
  REQUIRE(cudaMemcpy(in, host, sizeof host, cudaMemcpyHostToDevice));
  const cuuint64_t sizes[] = {kWidth, kHeight};
  const cuuint32_t box[] = {kTileWidth, kTileHeight};
  const CUtensorMap from = tensor_map(CU_TENSOR_MAP_DATA_TYPE_INT32, 4, 2, in, sizes, box);
  const CUtensorMap to = tensor_map(CU_TENSOR_MAP_DATA_TYPE_INT32, 4, 2, out, sizes, box);
  twice<<<dim3(3, 3), 64>>>(from, to);
  REQUIRE(cudaMemcpy(back, out, sizeof back, cudaMemcpyDeviceToHost));
  for (int i = 0; i < kHeight * kWidth; ++i)
    if (back[i / kWidth][i % kWidth] != 2 * (i + 1)) return 4;
  return 0;
}
