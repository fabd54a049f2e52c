// A stream frees memory that a kernel of another stream still uses.
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
  REQUIRE(cudaStreamSynchronize(one));
  fill<<<1, 64, 0, one>>>(data);
  REQUIRE(cudaFreeAsync(data, other));
  cudaDeviceSynchronize();
  return 0;
}
