// A table of functions with a gap, which one lane in four calls.
#include "require.cuh"

using Number = int (*)(int);
__device__ int plus_one(int x) { return x + 1; }
__device__ Number table[4] = {plus_one, plus_one, plus_one, nullptr};

__global__ void call_all(int* out) {
  out[threadIdx.x] = table[threadIdx.x & 3](threadIdx.x);  // @finding
}

int main() {
  int* out;
  REQUIRE(cudaMalloc(&out, 32 * sizeof(int)));
  call_all<<<1, 32>>>(out);
  return cudaDeviceSynchronize() == cudaErrorInvalidPc ? 0 : 9;
}
