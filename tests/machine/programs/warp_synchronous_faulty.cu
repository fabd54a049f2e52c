// The tail of a tree reduction trusts that a warp runs in lockstep: volatile, but no __syncwarp.
#include "require.cuh"

__global__ void block_sum(const float* in, float* out) {
  __shared__ volatile float tile[64];
  int t = threadIdx.x;
  tile[t] = in[t];
  __syncthreads();
  if (t < 32) {
    for (int step = 32; step > 0; step /= 2) {
      tile[t] = tile[t] + tile[t + step < 64 ? t + step : t];  // @finding
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
  return 0;
}
