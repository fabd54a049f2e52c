// Shuffles of every width that there is, known to the compiler or not.
#include "require.cuh"

__global__ void shift(int* out, int width) {
  int value = threadIdx.x;
  value += __shfl_down_sync(0xffffffffu, value, 1, width);
  value += __shfl_up_sync(0xffffffffu, value, 1, width);
  value += __shfl_xor_sync(0xffffffffu, value, 1, width);
  value += __shfl_sync(0xffffffffu, value, out[threadIdx.x], width);
  value += __shfl_sync(0xffffffffu, value, 3, 8);
  out[threadIdx.x] = value & 31;
}

int main() {
  int* out;
  REQUIRE(cudaMalloc(&out, 32 * sizeof *out));
  REQUIRE(cudaMemset(out, 0, 32 * sizeof *out));
  for (int width = 1; width <= 32; width *= 2) shift<<<1, 32>>>(out, width);
  REQUIRE(cudaDeviceSynchronize());
  return 0;
}
