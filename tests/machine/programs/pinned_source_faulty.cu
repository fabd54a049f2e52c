// The pinned source of an asynchronous copy is overwritten before anything waits for the copy.
#include "require.cuh"

__global__ void negate(int* values) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  values[i] = -values[i];
}

int main() {
  cudaStream_t stream;
  REQUIRE(cudaStreamCreate(&stream));
  constexpr int n = 4096;
  int *pinned, *device, *host = static_cast<int*>(malloc(n * sizeof(int)));
  REQUIRE(cudaMallocHost(&pinned, n * sizeof(int)));
  REQUIRE(cudaMalloc(&device, n * sizeof(int)));
  for (int i = 0; i < n; ++i) pinned[i] = 1;
  REQUIRE(cudaMemcpyAsync(device, pinned, n * sizeof(int), cudaMemcpyHostToDevice, stream));
  negate<<<n / 128, 128, 0, stream>>>(device);
  for (int i = 0; i < n; ++i) pinned[i] = 2;  // where the fault lies; a host access has no line in the report
  REQUIRE(cudaStreamSynchronize(stream));
  REQUIRE(cudaMemcpy(host, device, n * sizeof(int), cudaMemcpyDeviceToHost));
  return 0;
}
