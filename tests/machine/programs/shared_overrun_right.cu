// Two __shared__ variables side by side, each read inside its own bounds only.
#include "require.cuh"

__global__ void column_sums(const float* in, float* out) {
  __shared__ float keys[8][32];
  __shared__ float bias[32];
  int lane = threadIdx.x;
  for (int row = 0; row < 8; ++row) keys[row][lane] = in[row * 32 + lane];
  bias[lane] = 1.0f;
  __syncthreads();
  float sum = bias[31 - lane];
  for (int row = 0; row < 8; ++row) sum += keys[row][lane];
  out[lane] = sum;
}

int main() {
  float *in, *out, host[256];
  for (int i = 0; i < 256; ++i) host[i] = float(i % 7);
  REQUIRE(cudaMalloc(&in, sizeof host));
  REQUIRE(cudaMalloc(&out, 32 * sizeof(float)));
  REQUIRE(cudaMemcpy(in, host, sizeof host, cudaMemcpyHostToDevice));
  column_sums<<<1, 32>>>(in, out);
  float sums[32];
  REQUIRE(cudaMemcpy(sums, out, sizeof sums, cudaMemcpyDeviceToHost));
  for (int lane = 0; lane < 32; ++lane) {
    float expected = 1.0f;
    for (int row = 0; row < 8; ++row) expected += host[row * 32 + lane];
    if (sums[lane] != expected) return 4;
  }
  return 0;
}
