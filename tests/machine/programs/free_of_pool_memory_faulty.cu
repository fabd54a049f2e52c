// cudaFree waits for the kernels that use memory of cudaMalloc, not for those that use memory of cudaMallocAsync.
#include "require.cuh"

__global__ void fill(int* data) {
  data[threadIdx.x] = threadIdx.x;  // @finding
}

int main() {
  cudaStream_t stream;
  REQUIRE(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  int* data;
  REQUIRE(cudaMallocAsync(&data, 64 * sizeof(int), stream));
  fill<<<1, 64, 0, stream>>>(data);
  REQUIRE(cudaFree(data));
  cudaDeviceSynchronize();
  return 0;
}
