// The sum that a compare-and-swap loop adds to is set by a plain store of the same kernel, which nothing orders before it.
#include "require.cuh"

__global__ void gather(unsigned* sum) {
  if (blockIdx.x == 0 && threadIdx.x == 0) *sum = 7;  // @finding
  unsigned old = *sum, seen;
  do {
    seen = old;
    old = atomicCAS(sum, seen, seen * 2 + 1);
  } while (old != seen);
}

int main() {
  unsigned* sum;
  REQUIRE(cudaMalloc(&sum, sizeof *sum));
  REQUIRE(cudaMemset(sum, 0, sizeof *sum));
  gather<<<3, 64>>>(sum);
  REQUIRE(cudaDeviceSynchronize());
  return 0;
}
