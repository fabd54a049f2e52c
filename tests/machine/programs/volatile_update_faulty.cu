// Block 0 adds under a lock, block 1 adds without it: an update can be lost. Both say volatile, which makes the accesses
// strong and orders nothing.
#include "require.cuh"

__device__ int lock = 0;

__global__ void add(volatile int* count) {
  if (blockIdx.x == 0) {
    while (atomicCAS(&lock, 0, 1) != 0) {}
    __threadfence();
    *count = *count + 1;  // @finding
    __threadfence();
    atomicExch(&lock, 0);
  } else {
    *count = *count + 1;  // @other
  }
}

int main() {
  int* count;
  REQUIRE(cudaMalloc(&count, sizeof(int)));
  REQUIRE(cudaMemset(count, 0, sizeof(int)));
  add<<<2, 1>>>(count);
  cudaDeviceSynchronize();
  return 0;
}
