// Copies as the CUDA C++ library makes them: cuda::memcpy_async by one thread and by a block, of sizes that promise 16 bytes,
// and a tensor copy that a cuda::barrier waits for.
#include <utility>

#include <cooperative_groups.h>
#include <cuda/barrier>
#include <cuda/ptx>

#include "tensor_map.cuh"

namespace cg = cooperative_groups;
using barrier = cuda::barrier<cuda::thread_scope_block>;

constexpr int kCount = 1024;

__global__ void by_thread(const int* in, int* out) {
  __shared__ alignas(16) int row[kCount];
#pragma nv_diag_suppress static_var_with_dynamic_init
  __shared__ barrier bar;
  if (threadIdx.x == 0) {
    init(&bar, blockDim.x);
    cuda::ptx::fence_proxy_async(cuda::ptx::space_shared);
  }
  __syncthreads();
  if (threadIdx.x == 0) cuda::memcpy_async(row, in + blockIdx.x * kCount, cuda::aligned_size_t<16>(sizeof row), bar);
  bar.wait(bar.arrive());
  for (int i = threadIdx.x; i < kCount; i += blockDim.x) out[blockIdx.x * kCount + i] = row[i] + 1;
}

__global__ void by_block(const int* in, int* out) {
  __shared__ alignas(16) int row[kCount];
  __shared__ barrier bar;
  const auto block = cg::this_thread_block();
  if (threadIdx.x == 0) init(&bar, blockDim.x);
  block.sync();
  cuda::memcpy_async(block, row, in + blockIdx.x * kCount, cuda::aligned_size_t<16>(sizeof row), bar);
  bar.arrive_and_wait();
  for (int i = threadIdx.x; i < kCount; i += blockDim.x) out[blockIdx.x * kCount + i] = row[i ^ 1] + 2;
}

__global__ void add_to_tile(const __grid_constant__ CUtensorMap map, int x, int y) {
  __shared__ alignas(128) int tile[16][32];
  __shared__ barrier bar;
  if (threadIdx.x == 0) {
    init(&bar, blockDim.x);
    cuda::ptx::fence_proxy_async(cuda::ptx::space_shared);
  }
  __syncthreads();
  barrier::arrival_token token;
  const int at[] = {x, y};
  if (threadIdx.x == 0) {
    cuda::ptx::cp_async_bulk_tensor(cuda::ptx::space_cluster, cuda::ptx::space_global, &tile, &map, at, cuda::device::barrier_native_handle(bar));
    token = cuda::device::barrier_arrive_tx(bar, 1, sizeof tile);
  } else {
    token = bar.arrive();
  }
  bar.wait(std::move(token));
  tile[threadIdx.x / 32][threadIdx.x % 32] += static_cast<int>(threadIdx.x);
  cuda::ptx::fence_proxy_async(cuda::ptx::space_shared);
  __syncthreads();
  if (threadIdx.x == 0) {
    cuda::ptx::cp_async_bulk_tensor(cuda::ptx::space_global, cuda::ptx::space_shared, &map, at, &tile);
    cuda::ptx::cp_async_bulk_commit_group();
    cuda::ptx::cp_async_bulk_wait_group_read(cuda::ptx::n32_t<0>{});
  }
}

int main() {
  static int host[4 * kCount], back[4 * kCount];
  for (int i = 0; i < 4 * kCount; ++i) host[i] = i;
  int *in, *out;
  REQUIRE(cudaMalloc(&in, sizeof host));
  REQUIRE(cudaMalloc(&out, sizeof host));
  REQUIRE(cudaMemcpy(in, host, sizeof host, cudaMemcpyHostToDevice));
  by_thread<<<4, 128>>>(in, out);
  REQUIRE(cudaMemcpy(back, out, sizeof back, cudaMemcpyDeviceToHost));
  for (int i = 0; i < 4 * kCount; ++i)
    if (back[i] != i + 1) return 4;
  by_block<<<4, 128>>>(in, out);
  REQUIRE(cudaMemcpy(back, out, sizeof back, cudaMemcpyDeviceToHost));
  for (int i = 0; i < 4 * kCount; ++i)
    if (back[i] != (i ^ 1) + 2) return 5;
  const cuuint64_t sizes[] = {64, 64};
  const cuuint32_t box[] = {32, 16};
  add_to_tile<<<1, 512>>>(tensor_map(CU_TENSOR_MAP_DATA_TYPE_INT32, 4, 2, in, sizes, box), 32, 16);
  REQUIRE(cudaMemcpy(back, in, sizeof back, cudaMemcpyDeviceToHost));
  for (int i = 0; i < 4 * kCount; ++i) {
    const int row = i / 64 - 16, column = i % 64 - 32;
    if (back[i] != i + (row >= 0 && row < 16 && column >= 0 ? row * 32 + column : 0)) return 6;
  }
  return 0;
}
