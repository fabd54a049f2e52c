// A slot is claimed by a compare-and-swap against 0, and nobody has set it to 0.
#include "require.cuh"

__global__ void claim(int* owner) {
  if (threadIdx.x == 0) atomicCAS(owner, 0, 1);  // @finding
}

int main() {
  int* owner;
  REQUIRE(cudaMalloc(&owner, sizeof *owner));
  claim<<<1, 32>>>(owner);
  cudaDeviceSynchronize();
  return 0;
}
