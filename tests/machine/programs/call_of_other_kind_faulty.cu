// A function is called through a pointer that was cast from one with other parameters.
#include "require.cuh"

using Number = int (*)(int);
__device__ int plus_one(int x) { return x + 1; }
__device__ double scaled(double x, int n) { return x * n; }
__device__ Number table[2] = {plus_one, (Number)(void*)scaled};

__global__ void call_all(int* out) {
  out[threadIdx.x] = table[threadIdx.x & 1](threadIdx.x);  // @finding
}

int main() {
  int* out;
  REQUIRE(cudaMalloc(&out, 32 * sizeof(int)));
  call_all<<<1, 32>>>(out);
  return cudaDeviceSynchronize() == cudaErrorInvalidPc ? 0 : 9;
}
