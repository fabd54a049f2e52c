// Moves an array by one element in device memory with one copy, whose source and destination overlap.
#include "require.cuh"

int main() {
  int* data;
  REQUIRE(cudaMalloc(&data, 257 * sizeof *data));
  REQUIRE(cudaMemset(data, 0, 257 * sizeof *data));
  REQUIRE(cudaMemcpy(data + 1, data, 256 * sizeof *data, cudaMemcpyDeviceToDevice));
  REQUIRE(cudaDeviceSynchronize());
  return 0;
}
