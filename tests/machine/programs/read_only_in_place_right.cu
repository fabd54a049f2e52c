// The usual kernel in place: each thread reads its element first and writes it then.
#include "require.cuh"

__global__ void twice(const float* in, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float value = in[i];
  out[i] = value * 2;
}

int main() {
  float* data;
  REQUIRE(cudaMalloc(&data, 256 * sizeof(float)));
  REQUIRE(cudaMemset(data, 0, 256 * sizeof(float)));
  twice<<<4, 64>>>(data, data, 250);
  cudaDeviceSynchronize();
  return 0;
}
