// The grid is rounded up, so that all of the result is written before the host copies it.
#include "require.cuh"

__global__ void scale(const float* in, float* out, int size) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < size) out[i] = 2 * in[i];
}

int main() {
  constexpr int size = 200;
  float *in, *out, host[size];
  for (float& v : host) v = 1;
  REQUIRE(cudaMalloc(&in, sizeof host));
  REQUIRE(cudaMalloc(&out, sizeof host));
  REQUIRE(cudaMemcpy(in, host, sizeof host, cudaMemcpyHostToDevice));
  scale<<<(size + 63) / 64, 64>>>(in, out, size);
  REQUIRE(cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost));
  for (float v : host) if (v != 2) return 4;
  return 0;
}
