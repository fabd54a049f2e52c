// A per-thread array is filled up to a count and read one element further.
#include "require.cuh"

__global__ void gather(const int* order, const float* in, float* out, int count) {
  float kept[8];
  for (int i = 0; i < count; ++i) kept[order[i]] = in[i * 32 + threadIdx.x];
  float sum = 0.0f;
  for (int i = 0; i <= count; ++i) sum += kept[order[i]];  // @finding
  out[threadIdx.x] = sum;
}

int main() {
  const int order[8] = {3, 1, 4, 0, 5, 2, 6, 7};
  int* order_device;
  float *in, *out, host[8 * 32];
  for (float& v : host) v = 1.0f;
  REQUIRE(cudaMalloc(&order_device, sizeof order));
  REQUIRE(cudaMalloc(&in, sizeof host));
  REQUIRE(cudaMalloc(&out, 32 * sizeof(float)));
  REQUIRE(cudaMemcpy(order_device, order, sizeof order, cudaMemcpyHostToDevice));
  REQUIRE(cudaMemcpy(in, host, sizeof host, cudaMemcpyHostToDevice));
  gather<<<1, 32>>>(order_device, in, out, 6);
  REQUIRE(cudaMemcpy(host, out, 32 * sizeof(float), cudaMemcpyDeviceToHost));
  return 0;
}
