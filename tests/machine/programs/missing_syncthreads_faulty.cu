// The tile is written by all threads and read transposed without a barrier between.
#include "require.cuh"

__global__ void reverse(const float* in, float* out) {
  __shared__ float tile[128];
  tile[threadIdx.x] = in[threadIdx.x];  // @other
  out[threadIdx.x] = tile[127 - threadIdx.x];  // @finding
}

int main() {
  float *in, *out, host[128];
  for (int i = 0; i < 128; ++i) host[i] = float(i);
  REQUIRE(cudaMalloc(&in, sizeof host));
  REQUIRE(cudaMalloc(&out, sizeof host));
  REQUIRE(cudaMemcpy(in, host, sizeof host, cudaMemcpyHostToDevice));
  reverse<<<1, 128>>>(in, out);
  REQUIRE(cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost));
  return 0;
}
