// Roles of a block with a barrier each, the last of them number 15.
#include "require.cuh"

__global__ void roles(int* out, int first) {
  int barrier = first + threadIdx.x / 64;
  asm volatile("bar.sync %0, 64;" ::"r"(barrier) : "memory");
  out[threadIdx.x] = barrier;
}

int main() {
  int* out;
  REQUIRE(cudaMalloc(&out, 128 * sizeof *out));
  roles<<<1, 128>>>(out, 14);
  REQUIRE(cudaDeviceSynchronize());
  return 0;
}
