// The grid is rounded up to whole blocks and a guard keeps the tail inside its buffers.
#include "require.cuh"

__global__ void scale(const float* in, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  out[i] = 2.0f * in[i];
}

int main() {
  constexpr int n = 1000;
  float *in, *out, host[n];
  for (int i = 0; i < n; ++i) host[i] = float(i);
  REQUIRE(cudaMalloc(&in, n * sizeof(float)));
  REQUIRE(cudaMalloc(&out, n * sizeof(float)));
  REQUIRE(cudaMemcpy(in, host, n * sizeof(float), cudaMemcpyHostToDevice));
  scale<<<(n + 255) / 256, 256>>>(in, out, n);
  REQUIRE(cudaMemcpy(host, out, n * sizeof(float), cudaMemcpyDeviceToHost));
  for (int i = 0; i < n; ++i)
    if (host[i] != 2.0f * float(i)) return 4;
  return 0;
}
