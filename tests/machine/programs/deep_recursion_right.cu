// The recursion of the faulty twin with a stack that suffices, and one that the default holds: as the host computes.
#include "require.cuh"

__noinline__ __host__ __device__ unsigned walk(unsigned n, const unsigned* above) {
  unsigned own[4];
  for (int i = 0; i < 4; ++i) own[i] = above[i ^ (n & 3)] + n;
  return n == 0 ? own[0] : walk(n - 1, own) ^ own[n & 3];
}

__global__ void walk_all(unsigned* out, unsigned n) {
  const unsigned first[4] = {1, 2, 3, threadIdx.x};
  out[threadIdx.x] = walk(n, first);
}

int main() {
  unsigned *out, got[32];
  REQUIRE(cudaMalloc(&out, sizeof got));
  for (const unsigned deep : {12u, 2000u}) {
    if (deep > 12) REQUIRE(cudaDeviceSetLimit(cudaLimitStackSize, 256 << 10));
    walk_all<<<1, 32>>>(out, deep);
    REQUIRE(cudaMemcpy(got, out, sizeof got, cudaMemcpyDeviceToHost));
    for (unsigned t = 0; t < 32; ++t) {
      const unsigned first[4] = {1, 2, 3, t};
      if (got[t] != walk(deep, first)) return 9;
    }
  }
  return 0;
}
