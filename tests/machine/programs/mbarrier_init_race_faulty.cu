// One thread initialises an mbarrier, and the others arrive at it with nothing in between.
#include "mbarrier.cuh"
#include "require.cuh"

__global__ void meet(int* out) {
  __shared__ uint64_t barrier;
  if (threadIdx.x == 0) init(&barrier, blockDim.x);
  uint64_t state = arrive(&barrier);
  while (!test(&barrier, state)) {
  }
  out[threadIdx.x] = 1;
}

int main() {
  int* out;
  REQUIRE(cudaMalloc(&out, 64 * sizeof *out));
  meet<<<1, 64>>>(out);
  cudaDeviceSynchronize();
  return 0;
}
