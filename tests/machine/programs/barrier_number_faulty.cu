// A kernel with more roles than a block has barriers: the number comes to 16.
#include "require.cuh"

__global__ void roles(int* out, int first) {
  int barrier = first + threadIdx.x / 64;
  asm volatile("bar.sync %0, 64;" ::"r"(barrier) : "memory");  // @finding
  out[threadIdx.x] = barrier;
}

int main() {
  int* out;
  REQUIRE(cudaMalloc(&out, 128 * sizeof *out));
  roles<<<1, 128>>>(out, 15);
  cudaDeviceSynchronize();
  return 0;
}
