// Reads memory once and nothing else: what a kernel of as many bytes could reach at best in the same bench.

#include <cuda_runtime.h>

#include <cstdint>

namespace {

constexpr int kThreads = 512;
constexpr int kAtOnce = 4;
constexpr int kBlocksPerSm = 4;

__global__ void __launch_bounds__(kThreads) read(const uint4* data, int64_t count, uint32_t* never) {
  const int64_t share = (count + gridDim.x - 1) / gridDim.x;
  const int64_t first = blockIdx.x * share, end = min(first + share, count);
  uint32_t sum = 0;
  for (int64_t i = first + threadIdx.x; i < end; i += kAtOnce * kThreads) {
    uint4 loaded[kAtOnce] = {};
#pragma unroll
    for (int j = 0; j < kAtOnce; ++j) {
      if (i + j * kThreads < end) loaded[j] = __ldcs(data + i + j * kThreads);
    }
#pragma unroll
    for (const uint4& words : loaded) sum ^= words.x ^ words.y ^ words.z ^ words.w;
  }
  if (sum == 0x9e3779b9u) *never = sum;  // else the loads would be left out
}

}  // namespace

// Enqueues the reading of `bytes` from `data`, 16-byte aligned; `scratch` is four bytes that may be written.
extern "C" cudaError_t stream_launch(const void* data, int64_t bytes, void* scratch, cudaStream_t stream) {
  int device = 0, sm_count = 0;
  cudaError_t status = cudaGetDevice(&device);
  if (status != cudaSuccess) return status;
  status = cudaDeviceGetAttribute(&sm_count, cudaDevAttrMultiProcessorCount, device);
  if (status != cudaSuccess) return status;
  read<<<kBlocksPerSm * sm_count, kThreads, 0, stream>>>(static_cast<const uint4*>(data), bytes / 16,
                                                         static_cast<uint32_t*>(scratch));
  return cudaGetLastError();
}
