// A recursion with an array in each call, deeper than the default stack of 1 KB can be.
#include "require.cuh"

__noinline__ __device__ unsigned walk(unsigned n, const unsigned* above) {
  unsigned own[4];
  for (int i = 0; i < 4; ++i) own[i] = above[i ^ (n & 3)] + n;
  return n == 0 ? own[0] : walk(n - 1, own) ^ own[n & 3];  // @finding
}

__global__ void walk_all(unsigned* out, unsigned n) {
  const unsigned first[4] = {1, 2, 3, threadIdx.x};
  out[threadIdx.x] = walk(n, first);
}

int main() {
  unsigned* out;
  REQUIRE(cudaMalloc(&out, 32 * sizeof(unsigned)));
  walk_all<<<1, 32>>>(out, 2000);
  return cudaDeviceSynchronize() != cudaSuccess ? 0 : 9;
}
