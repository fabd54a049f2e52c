// A kernel frees memory of cudaMalloc.
#include "require.cuh"

__global__ void drop(int* buffer) {
  if (threadIdx.x == 0) free(buffer);  // @finding
}

int main() {
  int* buffer;
  REQUIRE(cudaMalloc(&buffer, 32 * sizeof(int)));
  drop<<<1, 32>>>(buffer);
  REQUIRE(cudaDeviceSynchronize());
  return 0;
}
