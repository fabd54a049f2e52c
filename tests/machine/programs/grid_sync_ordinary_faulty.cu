// A kernel that calls grid.sync() is launched like any other: its grid has no barrier.
#include "require.cuh"

#include <cooperative_groups.h>

__global__ void rotate(int* out) {
  out[blockIdx.x] = 1;
  cooperative_groups::this_grid().sync();  // @finding
  out[8 + blockIdx.x] = out[7 - blockIdx.x];
}

int main() {
  int* out;
  REQUIRE(cudaMalloc(&out, 16 * sizeof(int)));
  rotate<<<8, 1>>>(out);
  REQUIRE(cudaDeviceSynchronize());
  return 0;
}
