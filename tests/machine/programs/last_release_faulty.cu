// The block with the highest number lets go of the lock without a fence: right as long as it takes the lock last.
#include "require.cuh"

__device__ int lock = 0;

__global__ void append(int* count, int* list) {
  if (threadIdx.x == 0) {
    while (atomicCAS(&lock, 0, 1) != 0) {}
    __threadfence();
    list[*count] = blockIdx.x;  // @finding
    *count += 1;                // @finding
    if (blockIdx.x != gridDim.x - 1) __threadfence();
    atomicExch(&lock, 0);
  }
}

int main() {
  int *count, *list;
  REQUIRE(cudaMalloc(&count, sizeof(int)));
  REQUIRE(cudaMalloc(&list, 16 * sizeof(int)));
  REQUIRE(cudaMemset(count, 0, sizeof(int)));
  append<<<5, 32>>>(count, list);
  REQUIRE(cudaDeviceSynchronize());
  return 0;
}
