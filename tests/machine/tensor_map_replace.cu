// A block makes itself a tensor map of its own row: a copy in shared memory is changed, copied to global memory with a fence,
// and acquired before the copy engine sees it; twice. Argument 1: it is not acquired.
#include <cstdint>
#include <cstdlib>

#include <cuda/ptx>

#include "programs/tensor_map.cuh"

namespace ptx = cuda::ptx;

constexpr int kCount = 64, kBlocks = 3;

__device__ void wait(uint64_t* bar, unsigned parity) {
  while (!ptx::mbarrier_try_wait_parity(bar, parity)) {
  }
}

__global__ void rows(const __grid_constant__ CUtensorMap pattern, CUtensorMap* maps, const int* in, int* out, bool acquires) {
  __shared__ alignas(128) CUtensorMap own;
  __shared__ alignas(128) int row[kCount];
  __shared__ uint64_t bar;
  CUtensorMap* const map = maps + blockIdx.x;
  if (threadIdx.x == 0) {
    own = pattern;
    ptx::mbarrier_init(&bar, 1);
    ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
  }
  __syncwarp();
  for (int k = 0; k < 2; ++k) {
    const int* from = in + (2 * blockIdx.x + k) * kCount;
    if (threadIdx.x == 0) {
      asm volatile("tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%0], %1;" ::"r"(
                       static_cast<unsigned>(__cvta_generic_to_shared(&own))),
                   "l"(from)
                   : "memory");
      asm volatile("tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%0], 0, %1;" ::"r"(
                       static_cast<unsigned>(__cvta_generic_to_shared(&own))),
                   "r"(kCount - k)
                   : "memory");
    }
    __syncwarp();
    asm volatile("tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%0], [%1], 128;" ::"l"(
                     __cvta_generic_to_global(map)),
                 "r"(static_cast<unsigned>(__cvta_generic_to_shared(&own)))
                 : "memory");
    __syncwarp();
    if (threadIdx.x == 0) {
      if (acquires) asm volatile("fence.proxy.tensormap::generic.acquire.gpu [%0], 128;" ::"l"(map) : "memory");
      const int at[] = {0};
      ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &bar, sizeof row);
      ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, row, map, at, &bar);  // @finding
    }
    wait(&bar, k);
    for (int i = threadIdx.x; i < kCount; i += 32) out[(2 * blockIdx.x + k) * kCount + i] = row[i];
    __syncwarp();
  }
}

int main(int, char** arguments) {
  int *in, *out, host[2 * kBlocks][kCount], back[2 * kBlocks][kCount];
  CUtensorMap* maps;
  for (int i = 0; i < 2 * kBlocks * kCount; ++i) host[i / kCount][i % kCount] = i + 1;
  REQUIRE(cudaMalloc(&in, sizeof host));
  REQUIRE(cudaMalloc(&out, sizeof host));
  REQUIRE(cudaMalloc(&maps, kBlocks * sizeof *maps));
  REQUIRE(cudaMemcpy(in, host, sizeof host, cudaMemcpyHostToDevice));
  const cuuint64_t sizes[] = {kCount};
  const cuuint32_t box[] = {kCount};
  rows<<<kBlocks, 32>>>(tensor_map(CU_TENSOR_MAP_DATA_TYPE_INT32, 4, 1, in, sizes, box), maps, in, out, std::atoi(arguments[1]) == 0);
  REQUIRE(cudaMemcpy(back, out, sizeof back, cudaMemcpyDeviceToHost));
  for (int r = 0; r < 2 * kBlocks; ++r)
    for (int i = 0; i < kCount; ++i)
      if (back[r][i] != (r % 2 == 1 && i == kCount - 1 ? 0 : host[r][i])) return 4;
  return 0;
}
