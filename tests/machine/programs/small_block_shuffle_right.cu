// A reduction in a block of seventeen threads that reads lanes which are not there, and drops what they give.
#include "require.cuh"

__global__ void sum_row(const float* in, float* out) {
  float value = in[threadIdx.x];
  unsigned mask = (1u << blockDim.x) - 1;
  for (int step = 16; step > 0; step /= 2) {
    float other = __shfl_down_sync(mask, value, step);
    if (threadIdx.x + step < blockDim.x) value += other;
  }
  if (threadIdx.x == 0) *out = value;
}

int main() {
  float *in, *out, host[17];
  for (float& v : host) v = 1.0f;
  REQUIRE(cudaMalloc(&in, sizeof host));
  REQUIRE(cudaMalloc(&out, sizeof(float)));
  REQUIRE(cudaMemcpy(in, host, sizeof host, cudaMemcpyHostToDevice));
  sum_row<<<1, 17>>>(in, out);
  REQUIRE(cudaMemcpy(host, out, sizeof(float), cudaMemcpyDeviceToHost));
  return host[0] == 17.0f ? 0 : 4;
}
