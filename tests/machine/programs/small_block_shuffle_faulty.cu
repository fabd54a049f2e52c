// A reduction over the whole warp in a block of seventeen threads: it adds what lanes that are not there would hold.
#include "require.cuh"

__global__ void sum_row(const float* in, float* out) {
  float value = in[threadIdx.x];
  for (int step = 16; step > 0; step /= 2) value += __shfl_down_sync(0xffffffffu, value, step);  // @finding
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
  return 0;
}
