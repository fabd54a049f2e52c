// Volatile data handed to another block behind a fence of block scope, which orders nothing there.
#include "require.cuh"

__global__ void relay(volatile int* data, int* flag, int* out) {
  if (blockIdx.x == 0) {
    *data = 5;  // @other
    __threadfence_block();
    atomicExch(flag, 1);
  } else {
    while (atomicAdd(flag, 0) == 0) {}
    __threadfence();
    *out = *data;  // @finding
  }
}

int main() {
  int *data, *flag, *out;
  REQUIRE(cudaMalloc(&data, sizeof *data));
  REQUIRE(cudaMalloc(&flag, sizeof *flag));
  REQUIRE(cudaMalloc(&out, sizeof *out));
  REQUIRE(cudaMemset(flag, 0, sizeof *flag));
  relay<<<2, 1>>>(data, flag, out);
  REQUIRE(cudaDeviceSynchronize());
  return 0;
}
