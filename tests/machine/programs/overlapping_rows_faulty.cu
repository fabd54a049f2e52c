// Moves a tile of a matrix down by one row: rows of the source are rows of the destination.
#include "require.cuh"

int main() {
  constexpr size_t pitch = 64 * sizeof(float), width = 16 * sizeof(float);
  char* matrix;
  REQUIRE(cudaMalloc(&matrix, 32 * pitch));
  REQUIRE(cudaMemset(matrix, 0, 32 * pitch));
  REQUIRE(cudaMemcpy2D(matrix + pitch, pitch, matrix, pitch, width, 8, cudaMemcpyDeviceToDevice));
  REQUIRE(cudaDeviceSynchronize());
  return 0;
}
