// Attributes of kernels, their limits, and occupancy with and without a preferred carveout.
#include "say.cuh"

template <int Bytes>
__global__ void holds(int* out) {
  __shared__ char bytes[Bytes];
  bytes[threadIdx.x % Bytes] = 1;
  __syncthreads();
  if (out) *out = bytes[(threadIdx.x + 1) % Bytes];
}
__global__ void two(int* out) {
  __shared__ char first[3];
  __shared__ double second[2];
  first[threadIdx.x % 3] = 1, second[threadIdx.x % 2] = 2;
  __syncthreads();
  if (out) *out = first[(threadIdx.x + 1) % 3] + static_cast<int>(second[(threadIdx.x + 1) % 2]);
}
__global__ void none(int* out) { if (out) *out = 1; }
__global__ void __launch_bounds__(96) bounded(int* out) { if (out) *out = 1; }
extern __shared__ int dynamic[];
__global__ void mixed(int* out) {
  __shared__ char bytes[100];
  bytes[threadIdx.x % 100] = 1, dynamic[threadIdx.x] = 1;
  __syncthreads();
  if (out) *out = bytes[(threadIdx.x + 1) % 100] + dynamic[threadIdx.x ^ 1];
}

template <class K>
void attributes(const char* name, K kernel) {
  cudaFuncAttributes a;
  const cudaError_t code = cudaFuncGetAttributes(&a, kernel);
  std::printf("%s: %s shared %zu local %zu const %zu threads %d dynamic %d carveout %d cluster %d %d %d\n", name, cudaGetErrorName(code),
              a.sharedSizeBytes, a.localSizeBytes, a.constSizeBytes, a.maxThreadsPerBlock, a.maxDynamicSharedSizeBytes,
              a.preferredShmemCarveout, a.clusterDimMustBeSet, a.requiredClusterWidth, a.nonPortableClusterSizeAllowed);
}
template <class K>
void set(const char* name, K kernel, cudaFuncAttribute which, int value) {
  std::printf("set %s %d to %d: %s\n", name, static_cast<int>(which), value, cudaGetErrorName(cudaFuncSetAttribute(kernel, which, value)));
  cudaGetLastError();
}
template <class K>
void occupancy(const char* name, K kernel) {
  for (int threads : {0, 1, 32, 33, 64, 96, 97, 128, 256, 512, 768, 1024, 1025, -1})
    for (size_t shared : {size_t{0}, size_t{1}, size_t{1024}, size_t{8192}, size_t{16384}, size_t{40000}, size_t{49152}, size_t{100000}, size_t{232448}, size_t{300000}}) {
      int blocks = -7;
      const cudaError_t code = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, threads, shared);
      cudaGetLastError();
      std::printf("occupancy %s %d threads %zu shared: %s %d\n", name, threads, shared, cudaGetErrorName(code), blocks);
    }
}
template <class K>
void available(const char* name, K kernel) {
  for (int blocks : {0, 1, 2, 3, 7, 16, 32, 33})
    for (int threads : {32, 1024}) {
      size_t bytes = 7;
      const cudaError_t code = cudaOccupancyAvailableDynamicSMemPerBlock(&bytes, kernel, blocks, threads);
      cudaGetLastError();
      std::printf("available %s %d blocks %d threads: %s %zu\n", name, blocks, threads, cudaGetErrorName(code), bytes);
    }
}

int main() {
  attributes("holds<1>", holds<1>), attributes("holds<15>", holds<15>), attributes("holds<16>", holds<16>), attributes("holds<17>", holds<17>);
  attributes("holds<1001>", holds<1001>), attributes("holds<49151>", holds<49151>), attributes("two", two), attributes("none", none);
  attributes("bounded", bounded), attributes("mixed", mixed);
  const auto dynamic_size = cudaFuncAttributeMaxDynamicSharedMemorySize;
  const auto carveout = cudaFuncAttributePreferredSharedMemoryCarveout;
  for (int v : {-1, 0, 1, 49152, 49153, 232447, 232448, 232449, 1 << 30}) set("none", none, dynamic_size, v);
  for (int v : {232448 - 112, 232448 - 111, 232448 - 100, 232448 - 99, 0}) set("mixed", mixed, dynamic_size, v), attributes("mixed", mixed);
  for (int v : {-2, -1, 0, 1, 50, 99, 100, 101, 1000}) set("none", none, carveout, v), attributes("none", none);
  set("none", none, cudaFuncAttributeClusterDimMustBeSet, 1), set("none", none, cudaFuncAttributeRequiredClusterWidth, 2);
  set("none", none, cudaFuncAttributeNonPortableClusterSizeAllowed, 1), set("none", none, cudaFuncAttributeNonPortableClusterSizeAllowed, 2);
  set("none", none, cudaFuncAttributeClusterSchedulingPolicyPreference, 0), set("none", none, cudaFuncAttributeClusterSchedulingPolicyPreference, 9);
  set("none", none, static_cast<cudaFuncAttribute>(0), 1), set("none", none, static_cast<cudaFuncAttribute>(77), 1);
  attributes("none", none);
  set("none", none, carveout, -1), set("none", none, dynamic_size, 232448), set("mixed", mixed, dynamic_size, 232448 - 112);
  occupancy("none", none), occupancy("mixed", mixed), occupancy("holds<1001>", holds<1001>), occupancy("bounded", bounded);
  available("none", none), available("mixed", mixed), available("holds<49151>", holds<49151>);
  for (int percent : {0, 1, 10, 25, 50, 75, 100}) {
    set("none", none, carveout, percent);
    for (size_t shared : {size_t{0}, size_t{1024}, size_t{8192}, size_t{16384}, size_t{40000}, size_t{100000}, size_t{232448}}) {
      int blocks = -7;
      const cudaError_t code = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, none, 64, shared);
      std::printf("carveout %d, %zu shared: %s %d\n", percent, shared, cudaGetErrorName(code), blocks);
    }
    available(percent == 50 ? "half" : "none", none);
  }
  return 0;
}
