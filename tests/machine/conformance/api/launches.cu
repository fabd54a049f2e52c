// Launch configurations at and beyond every limit.
#include "say.cuh"

__global__ void plain(int* out) { if (out) *out = 1; }
__global__ void __launch_bounds__(256) bounded(int* out) { if (out) *out = 1; }
__global__ void __launch_bounds__(1024, 1) large(int* out) { if (out) *out = 1; }
__global__ void odd_static(int* out) {
  __shared__ char bytes[1001];
  bytes[threadIdx.x % 1001] = 1;
  __syncthreads();
  if (out) *out = bytes[(threadIdx.x + 1) % 1001];
}
__global__ void full_static(int* out) {
  __shared__ char bytes[49152];
  bytes[threadIdx.x] = 1;
  __syncthreads();
  if (out) *out = bytes[threadIdx.x ^ 1];
}
extern __shared__ char dynamic[];
__global__ void uses_dynamic(int* out) {
  dynamic[threadIdx.x] = 1;
  __syncthreads();
  if (out) *out = dynamic[threadIdx.x ^ 1];
}

template <class K>
void launch(const char* what, K kernel, dim3 grid, dim3 block, size_t shared = 0, cudaStream_t stream = nullptr) {
  int* null = nullptr;
  void* arguments[] = {&null};
  const cudaError_t code = cudaLaunchKernel(reinterpret_cast<const void*>(kernel), grid, block, arguments, shared, stream);
  std::printf("%s grid (%u,%u,%u) block (%u,%u,%u) shared %zu: %s, last %s", what, grid.x, grid.y, grid.z, block.x, block.y, block.z,
              shared, cudaGetErrorName(code), cudaGetErrorName(cudaPeekAtLastError()));
  std::printf(", again %s", cudaGetErrorName(cudaGetLastError()));
  std::printf(", after %s\n", cudaGetErrorName(cudaDeviceSynchronize()));
  cudaGetLastError();
  std::fflush(stdout);
}

int main() {
  launch("plain", plain, 1, 1);
  for (unsigned k : {0u, 65535u, 65536u, 2147483647u, 2147483648u, 4294967295u}) {
    if (k < 100000 || k > 2147483647u) launch("plain", plain, dim3(k, 1, 1), 1);
    if (k != 2147483647u) launch("plain", plain, dim3(1, k, 1), 1), launch("plain", plain, dim3(1, 1, k), 1);
  }
  for (unsigned k : {0u, 64u, 65u, 1024u, 1025u, 2048u, 4294967295u})
    launch("plain", plain, 1, dim3(k, 1, 1)), launch("plain", plain, 1, dim3(1, k, 1)), launch("plain", plain, 1, dim3(1, 1, k));
  launch("plain", plain, 1, dim3(32, 32, 1)), launch("plain", plain, 1, dim3(32, 33, 1)), launch("plain", plain, 1, dim3(16, 16, 8));
  launch("plain", plain, dim3(0, 0, 0), dim3(0, 0, 0));
  launch("bounded", bounded, 1, 256), launch("bounded", bounded, 1, 257), launch("bounded", bounded, 1, 1025), launch("bounded", bounded, 1, 0);
  launch("large", large, 1, 1024);
  for (size_t bytes : {49151, 49152, 49153, 65536, 232448, 232449}) launch("dynamic", uses_dynamic, 1, 64, bytes);
  for (size_t bytes : {48136, 48137, 48143, 48144, 48145, 48151, 48152, 49152}) launch("odd_static", odd_static, 1, 64, bytes);
  for (size_t bytes : {0, 1, 16, 1024}) launch("full_static", full_static, 1, 64, bytes);
  SAY(cudaFuncSetAttribute(uses_dynamic, cudaFuncAttributeMaxDynamicSharedMemorySize, 232448));
  for (size_t bytes : {232447, 232448, 232449}) launch("dynamic", uses_dynamic, 1, 64, bytes);
  return 0;
}
