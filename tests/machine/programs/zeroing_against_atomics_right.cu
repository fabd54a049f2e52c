// The output is cleared by a kernel of its own; then all blocks add into it.
#include "require.cuh"

__global__ void clear(float* out) { out[blockIdx.x * 32 + threadIdx.x] = 0.0f; }

__global__ void scatter_add(const float* in, float* out, int n) {
  int i = blockIdx.x * 32 + threadIdx.x;
  atomicAdd(&out[(i * 7) % n], in[i]);
}

int main() {
  constexpr int n = 8 * 32;
  float *in, *out, host[n];
  for (float& v : host) v = 1.0f;
  REQUIRE(cudaMalloc(&in, sizeof host));
  REQUIRE(cudaMalloc(&out, sizeof host));
  REQUIRE(cudaMemcpy(in, host, sizeof host, cudaMemcpyHostToDevice));
  clear<<<n / 32, 32>>>(out);
  scatter_add<<<n / 32, 32>>>(in, out, n);
  REQUIRE(cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost));
  return host[0] == 1.0f && host[n - 1] == 1.0f ? 0 : 4;
}
