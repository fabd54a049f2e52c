// A kernel uses memory on a stream that does not wait for the stream which allocates it.
#include "require.cuh"

__global__ void fill(int* data) {
  data[threadIdx.x] = threadIdx.x;  // @finding
}

int main() {
  cudaStream_t one, other;
  REQUIRE(cudaStreamCreateWithFlags(&one, cudaStreamNonBlocking));
  REQUIRE(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
  int* data;
  REQUIRE(cudaMallocAsync(&data, 64 * sizeof(int), one));
  fill<<<1, 64, 0, other>>>(data);
  REQUIRE(cudaDeviceSynchronize());
  REQUIRE(cudaFreeAsync(data, one));
  cudaDeviceSynchronize();
  return 0;
}
