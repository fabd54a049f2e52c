// A compare-and-swap compares with a value that nobody has set, and so may store or not.
#include "require.cuh"

__global__ void claim(const int* expected, int* owner) {
  int guess = expected[threadIdx.x];  // @finding
  if (threadIdx.x == 0) atomicCAS(owner, guess, 1);  // @other
}

int main() {
  int *expected, *owner;
  REQUIRE(cudaMalloc(&expected, 32 * sizeof *expected));
  REQUIRE(cudaMalloc(&owner, sizeof *owner));
  REQUIRE(cudaMemset(owner, 0, sizeof *owner));
  claim<<<1, 32>>>(expected, owner);
  cudaDeviceSynchronize();
  return 0;
}
