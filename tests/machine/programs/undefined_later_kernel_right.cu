// The first kernel passes on, for every lane, what nobody wrote as well; the second looks at the lanes that count.
#include "require.cuh"

__global__ void scale(const float* in, float* out) { out[threadIdx.x] = 2.0f * in[threadIdx.x]; }

__global__ void sum_live(const float* in, float* sum, int length) {
  float value = threadIdx.x < length ? in[threadIdx.x] : 0.0f;
  for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(0xffffffffu, value, step);
  if (threadIdx.x == 0) *sum = value;
}

int main() {
  float *in, *scaled, *sum, host[32];
  for (float& v : host) v = 1.0f;
  REQUIRE(cudaMalloc(&in, sizeof host));
  REQUIRE(cudaMalloc(&scaled, sizeof host));
  REQUIRE(cudaMalloc(&sum, sizeof(float)));
  REQUIRE(cudaMemcpy(in, host, 20 * sizeof(float), cudaMemcpyHostToDevice));
  scale<<<1, 32>>>(in, scaled);
  sum_live<<<1, 32>>>(scaled, sum, 20);
  REQUIRE(cudaMemcpy(host, sum, sizeof(float), cudaMemcpyDeviceToHost));
  return host[0] == 40.0f ? 0 : 4;
}
