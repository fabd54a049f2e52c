// Threads count in the halves of a 64-bit word by 32-bit atomics, while others add to the whole by 64-bit ones: no atomic is
// one to an atomic of another width.
#include "require.cuh"

__global__ void count(unsigned long long* both) {
  auto* halves = reinterpret_cast<unsigned*>(both);
  if (blockIdx.x % 2 == 0) atomicAdd(&halves[1], 1u);  // @finding
  else atomicAdd(both, 1ull);  // @other
}

int main() {
  unsigned long long* both;
  REQUIRE(cudaMalloc(&both, sizeof *both));
  REQUIRE(cudaMemset(both, 0, sizeof *both));
  count<<<4, 64>>>(both);
  REQUIRE(cudaDeviceSynchronize());
  return 0;
}
