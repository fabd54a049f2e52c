// Data is stored over an mbarrier that nobody has invalidated.
#include "mbarrier.cuh"
#include "require.cuh"

__global__ void reuse(int* out) {
  __shared__ union {
    uint64_t barrier;
    volatile int data[2];
  } place;
  if (threadIdx.x == 0) init(&place.barrier, 64);
  __syncthreads();
  uint64_t state = arrive(&place.barrier);
  while (!test(&place.barrier, state)) {
  }
  __syncthreads();
  if (threadIdx.x == 0) place.data[0] = 7;  // @finding
  __syncthreads();
  out[threadIdx.x] = place.data[0];
}

int main() {
  int* out;
  REQUIRE(cudaMalloc(&out, 64 * sizeof *out));
  reuse<<<1, 64>>>(out);
  cudaDeviceSynchronize();
  return 0;
}
