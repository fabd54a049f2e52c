// The tile is written by all threads, a barrier follows, then it is read transposed.
#include "require.cuh"

__global__ void reverse(const float* in, float* out) {
  __shared__ float tile[128];
  tile[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  out[threadIdx.x] = tile[127 - threadIdx.x];
}

int main() {
  float *in, *out, host[128];
  for (int i = 0; i < 128; ++i) host[i] = float(i);
  REQUIRE(cudaMalloc(&in, sizeof host));
  REQUIRE(cudaMalloc(&out, sizeof host));
  REQUIRE(cudaMemcpy(in, host, sizeof host, cudaMemcpyHostToDevice));
  reverse<<<1, 128>>>(in, out);
  REQUIRE(cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost));
  for (int i = 0; i < 128; ++i)
    if (host[i] != float(127 - i)) return 4;
  return 0;
}
