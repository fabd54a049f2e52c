// The grid is rounded up to whole blocks and the tail guard is missing: the last threads read and write past
// the end of both buffers. Nothing shows in the output, which is as long as promised.
#include "require.cuh"

__global__ void scale(const float* in, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = 2.0f * in[i];  // @finding
}

int main() {
  constexpr int n = 1000;
  float *in, *out, host[n];
  for (int i = 0; i < n; ++i) host[i] = float(i);
  REQUIRE(cudaMalloc(&in, n * sizeof(float)));
  REQUIRE(cudaMalloc(&out, n * sizeof(float)));
  REQUIRE(cudaMemcpy(in, host, n * sizeof(float), cudaMemcpyHostToDevice));
  scale<<<(n + 255) / 256, 256>>>(in, out, n);
  cudaDeviceSynchronize();
  return 0;
}
