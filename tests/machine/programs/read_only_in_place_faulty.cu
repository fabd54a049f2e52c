// The usual kernel in place, but with const __restrict__ on its input: each thread reads its element first and writes it
// then. The load cannot see the write, and still may not be a read-only one: a warning.
#include "require.cuh"

__global__ void twice(const float* __restrict__ in, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float value = __ldg(in + i);  // @other
  out[i] = value * 2;  // @finding
}

int main() {
  float* data;
  REQUIRE(cudaMalloc(&data, 256 * sizeof(float)));
  REQUIRE(cudaMemset(data, 0, 256 * sizeof(float)));
  twice<<<4, 64>>>(data, data, 250);
  cudaDeviceSynchronize();
  return 0;
}
