// The last block gives the lock back with no fence before it: whoever takes it next need not see what it wrote. Only where
// it is not the last to take it does a run show that.
#include "require.cuh"

__device__ int lock = 0, total = 0;

__global__ void add() {
  if (threadIdx.x != 0) return;
  while (atomicCAS(&lock, 0, 1) != 0) {}
  __threadfence();
  total += 1;  // @finding
  if (blockIdx.x != gridDim.x - 1) __threadfence();
  atomicExch(&lock, 0);
}

int main() {
  add<<<4, 32>>>();
  cudaDeviceSynchronize();
  return 0;
}
