// The grid is rounded down: nobody writes the last elements, and the host copies them with the others.
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
  scale<<<size / 64, 64>>>(in, out, size);
  REQUIRE(cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost));
  return 0;
}
