// Compare-and-swaps that undefined bits do not decide: they store an undefined value, which nobody looks at; what is
// defined differs already; a first guess comes from the place itself, half of which nobody has written.
#include "require.cuh"

__global__ void claim(int* owner, int* expected, unsigned* pair, unsigned* half) {
  if (threadIdx.x != 0) return;
  atomicCAS(owner, 0, expected[0]);
  atomicExch(owner, 2);
  unsigned mixed = (expected[1] & 0xffff) | 0x10000;
  atomicCAS(pair, mixed, 7u);  // its upper half is 2
  *reinterpret_cast<volatile unsigned short*>(half) = 5;
  unsigned seen = *const_cast<volatile unsigned*>(half);
  atomicCAS(half, seen, seen + 1);
}

int main() {
  int *owner, *expected, host;
  unsigned *pair, *half, two = 0x20000;
  REQUIRE(cudaMalloc(&owner, sizeof host));
  REQUIRE(cudaMalloc(&expected, 2 * sizeof host));
  REQUIRE(cudaMalloc(&pair, sizeof two));
  REQUIRE(cudaMalloc(&half, sizeof two));
  REQUIRE(cudaMemset(owner, 0, sizeof host));
  REQUIRE(cudaMemcpy(pair, &two, sizeof two, cudaMemcpyHostToDevice));
  claim<<<1, 32>>>(owner, expected, pair, half);
  REQUIRE(cudaMemcpy(&host, owner, sizeof host, cudaMemcpyDeviceToHost));
  return host == 2 ? 0 : 4;
}
