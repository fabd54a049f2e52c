// Block 0 takes the lock with no fence behind it, the others have one. Only where block 0 is not the first to take it does
// a run show that what it reads need not be what the block before it wrote.
#include "require.cuh"

__device__ int lock = 0, total = 0;

__global__ void add() {
  if (threadIdx.x != 0) return;
  while (atomicCAS(&lock, 0, 1) != 0) {}
  if (blockIdx.x != 0) __threadfence();
  total += 1 + blockIdx.x;  // @finding
  __threadfence();
  atomicExch(&lock, 0);
}

int main() {
  add<<<3, 32>>>();
  cudaDeviceSynchronize();
  return 0;
}
