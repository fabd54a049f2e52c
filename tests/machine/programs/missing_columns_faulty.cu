// A kernel fills rows of 32 numbers but for the last eight columns, and the host copies whole rows.
#include "require.cuh"

__global__ void fill(float* matrix) {
  if (threadIdx.x < 24) matrix[blockIdx.x * 32 + threadIdx.x] = 1.0f;
}

__global__ void fill_rows(float* matrix) {
  float* row = matrix + threadIdx.x * 32;
#pragma unroll
  for (int i = 0; i < 24; ++i) row[i] = 1.0f;
}

int main() {
  float *matrix, host[4 * 32];
  REQUIRE(cudaMalloc(&matrix, sizeof host));
  fill<<<4, 32>>>(matrix);
  fill_rows<<<1, 4>>>(matrix);
  REQUIRE(cudaMemcpy(host, matrix, sizeof host, cudaMemcpyDeviceToHost));
  return 0;
}
