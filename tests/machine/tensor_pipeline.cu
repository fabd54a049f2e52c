// A pipeline as Hopper kernels are built: a producer thread fills stages by tensor copies, consumers read them through the
// 128-byte swizzle and hand them back, and the result leaves in bulk. Argument: which fault is planted, 0 for none.
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include <cuda.h>
#include <cuda/ptx>
#include <cuda_runtime.h>

namespace ptx = cuda::ptx;

enum Fault { kNone, kPhase, kStages, kBytes, kProxyFence, kSwizzle };

constexpr int kRows = 64, kTile = 32, kTiles = 8, kColumns = kTile * kTiles, kStagesHeld = 2;

struct alignas(1024) Stage {
  float tile[kRows][kTile];
};

__device__ void wait(uint64_t* bar, unsigned parity) {
  while (!ptx::mbarrier_try_wait_parity(bar, parity)) {
  }
}

template <Fault fault>
__global__ void weighted_rows(const __grid_constant__ CUtensorMap map, float* out) {
  __shared__ Stage stage[kStagesHeld];
  __shared__ alignas(128) float result[kRows];
  __shared__ uint64_t full[kStagesHeld], empty[kStagesHeld];
  if (threadIdx.x == 0) {
    for (int s = 0; s < kStagesHeld; ++s) ptx::mbarrier_init(&full[s], 1), ptx::mbarrier_init(&empty[s], kRows);
    ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
  }
  __syncthreads();
  if (threadIdx.x < 32) {
    if (threadIdx.x == 0) {
      for (int k = 0; k < kTiles; ++k) {
        const int s = k % kStagesHeld, round = k / kStagesHeld;
        // The producer trusts in one stage more than there is.
        constexpr int kFree = kStagesHeld + (fault == kStages ? 1 : 0);
        if (k >= kFree) wait(&empty[s], (round - 1) & 1);
        constexpr unsigned kExpected = sizeof(Stage) + (fault == kBytes ? 16 : 0);
        ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &full[s], kExpected);
        const int at[] = {k * kTile, static_cast<int>(blockIdx.x) * kRows};
        ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, &stage[s], &map, at, &full[s]);  // @refill
      }
    }
  } else {
    const int row = static_cast<int>(threadIdx.x) - 32;
    float sum = 0;
    for (int k = 0; k < kTiles; ++k) {
      const int s = k % kStagesHeld, round = k / kStagesHeld;
      wait(&full[s], (fault == kPhase ? round + 1 : round) & 1);
      for (int c = 0; c < kTile; ++c) {
        const int chunk = c / 4 ^ (fault == kSwizzle ? row / 2 % 4 : row % 8);
        sum += static_cast<float>(k * kTile + c) * stage[s].tile[row][chunk * 4 + c % 4];  // @use
      }
      ptx::mbarrier_arrive(&empty[s]);
    }
    result[row] = sum;  // @write
    if (fault != kProxyFence) ptx::fence_proxy_async(ptx::space_shared);
    asm volatile("bar.sync 1, 64;" ::: "memory");
    if (row == 0) {
      ptx::cp_async_bulk(ptx::space_global, ptx::space_shared, out + blockIdx.x * kRows, result, sizeof result);  // @store
      ptx::cp_async_bulk_commit_group();
      ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>{});
    }
  }
}

void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "%s\n", what);
  std::exit(9);
}

CUtensorMap map_of(float* tensor, int rows) {
  void* encode = nullptr;
  cudaDriverEntryPointQueryResult found;
  require(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &encode, 12000, cudaEnableDefault, &found) == cudaSuccess &&
              found == cudaDriverEntryPointSuccess,
          "no cuTensorMapEncodeTiled");
  CUtensorMap map;
  const cuuint64_t sizes[] = {kColumns, static_cast<cuuint64_t>(rows)}, strides[] = {kColumns * sizeof(float)};
  const cuuint32_t box[] = {kTile, kRows}, steps[] = {1, 1};
  require(reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(encode)(
              &map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, tensor, sizes, strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
              CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS,
          "cuTensorMapEncodeTiled failed");
  return map;
}

template <Fault fault>
int run() {
  constexpr int kBlocks = 3, kAll = kBlocks * kRows;
  static float host[kAll][kColumns], back[kAll];
  for (int r = 0; r < kAll; ++r)
    for (int c = 0; c < kColumns; ++c) host[r][c] = static_cast<float>((r * 7 + c * 3) % 11);
  float *in, *out;
  require(cudaMalloc(&in, sizeof host) == cudaSuccess && cudaMalloc(&out, sizeof back) == cudaSuccess, "no memory");
  cudaMemcpy(in, host, sizeof host, cudaMemcpyHostToDevice);
  weighted_rows<fault><<<kBlocks, 32 + kRows>>>(map_of(in, kAll), out);
  if (cudaMemcpy(back, out, sizeof back, cudaMemcpyDeviceToHost) != cudaSuccess) return 3;
  for (int r = 0; r < kAll; ++r) {
    float sum = 0;
    for (int c = 0; c < kColumns; ++c) sum += static_cast<float>(c) * host[r][c];
    if (back[r] != sum) return 4;
  }
  return 0;
}

int main(int, char** arguments) {
  switch (std::atoi(arguments[1])) {
    case kNone: return run<kNone>();
    case kPhase: return run<kPhase>();
    case kStages: return run<kStages>();
    case kBytes: return run<kBytes>();
    case kProxyFence: return run<kProxyFence>();
    case kSwizzle: return run<kSwizzle>();
    default: return 2;
  }
}
