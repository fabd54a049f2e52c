// The first guess of a compare-and-swap loop on one element comes from its neighbour, which other threads swap at the time.
#include "require.cuh"

__global__ void gather(unsigned* sums) {
  unsigned old = sums[threadIdx.x % 4 + 1], seen;  // @finding
  do {
    seen = old;
    old = atomicCAS(&sums[threadIdx.x % 4], seen, seen + 1);
  } while (old != seen);
}

int main() {
  unsigned* sums;
  REQUIRE(cudaMalloc(&sums, 5 * sizeof *sums));
  REQUIRE(cudaMemset(sums, 0, 5 * sizeof *sums));
  gather<<<3, 64>>>(sums);
  REQUIRE(cudaDeviceSynchronize());
  return 0;
}
