// cudaMemset clears exactly the bytes of the buffer.
#include "require.cuh"

int main() {
  constexpr size_t elements = 100;
  short* device;
  REQUIRE(cudaMalloc(&device, elements * sizeof(short)));
  REQUIRE(cudaMemset(device, 0, elements * sizeof(short)));
  return 0;
}
