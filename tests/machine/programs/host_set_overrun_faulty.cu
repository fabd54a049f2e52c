// cudaMemset is given elements where it takes bytes times two: it clears past the end of the buffer.
#include "require.cuh"

int main() {
  constexpr size_t elements = 100;
  short* device;
  REQUIRE(cudaMalloc(&device, elements * sizeof(short)));
  cudaMemset(device, 0, elements * sizeof(int));
  return 0;
}
