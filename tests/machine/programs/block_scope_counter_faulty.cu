// Blocks share a counter, and count by atomics of block scope.
#include "require.cuh"

__global__ void count(unsigned* counter) {
  atomicAdd_block(counter, 1u);  // @finding
}

int main() {
  unsigned* counter;
  REQUIRE(cudaMalloc(&counter, sizeof *counter));
  REQUIRE(cudaMemset(counter, 0, sizeof *counter));
  count<<<4, 64>>>(counter);
  REQUIRE(cudaDeviceSynchronize());
  return 0;
}
