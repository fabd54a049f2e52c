// Prints an element of an array that nobody has written.
#include "require.cuh"

__global__ void show(const float* values) {
  printf("%d: %f\n", threadIdx.x, values[threadIdx.x]);  // @finding
}

int main() {
  float* values;
  REQUIRE(cudaMalloc(&values, 4 * sizeof *values));
  REQUIRE(cudaMemset(values, 0, 3 * sizeof *values));
  show<<<1, 4>>>(values);
  REQUIRE(cudaDeviceSynchronize());
  return 0;
}
