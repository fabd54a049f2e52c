// Segments of 24 lanes, which no shuffle has: the width must be a power of two.
#include "require.cuh"

__global__ void shift(int* out, int width) {
  out[threadIdx.x] = __shfl_down_sync(0xffffffffu, threadIdx.x, 1, width);  // @finding
}

int main() {
  int* out;
  REQUIRE(cudaMalloc(&out, 32 * sizeof *out));
  shift<<<1, 32>>>(out, 24);
  cudaDeviceSynchronize();
  return 0;
}
