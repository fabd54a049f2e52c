// cudaMemset is given elements where it takes bytes times two: it clears past the end of the buffer.
#include "require.cuh"

__global__ void count_up(short* values) { values[threadIdx.x] += 1; }

int main() {
  constexpr size_t elements = 100;
  short* device;
  REQUIRE(cudaMalloc(&device, elements * sizeof(short)));
  cudaMemset(device, 0, elements * sizeof(int));
  count_up<<<1, elements>>>(device);
  return 0;
}
