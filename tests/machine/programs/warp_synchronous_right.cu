// The tail of a tree reduction with __syncwarp between reading and writing, and between the steps.
#include "require.cuh"

__global__ void block_sum(const float* in, float* out) {
  __shared__ float tile[64];
  int t = threadIdx.x;
  tile[t] = in[t];
  __syncthreads();
  if (t < 32) {
    for (int step = 32; step > 0; step /= 2) {
      float other = tile[t + step < 64 ? t + step : t];
      __syncwarp();
      tile[t] += other;
      __syncwarp();
    }
    if (t == 0) *out = tile[0];
  }
}

int main() {
  float *in, *out, host[64], sum;
  for (float& v : host) v = 1.0f;
  REQUIRE(cudaMalloc(&in, sizeof host));
  REQUIRE(cudaMalloc(&out, sizeof(float)));
  REQUIRE(cudaMemcpy(in, host, sizeof host, cudaMemcpyHostToDevice));
  block_sum<<<1, 64>>>(in, out);
  REQUIRE(cudaMemcpy(&sum, out, sizeof sum, cudaMemcpyDeviceToHost));
  return sum == 64.0f ? 0 : 4;
}
