// The tile is filled under a predicate, rows past the length stay unwritten, and the sum reads all of them,
// weighted by zero: 0 x NaN is NaN on the day the stale bytes hold one.
#include "require.cuh"

__global__ void weighted_sum(const float* values, const float* weights, float* out, int length) {
  __shared__ float tile[16][32];
  int lane = threadIdx.x, row = threadIdx.y;
  if (row < length) tile[row][lane] = values[row * 32 + lane];
  __syncthreads();
  if (row != 0) return;
  float sum = 0.0f;
  for (int r = 0; r < 16; ++r) sum += weights[r] * tile[r][lane];  // @finding
  out[lane] = sum;
}

int main() {
  constexpr int length = 13;
  float *values, *weights, *out, host[16 * 32], weight[16];
  for (float& v : host) v = 1.0f;
  for (int r = 0; r < 16; ++r) weight[r] = r < length ? 1.0f : 0.0f;
  REQUIRE(cudaMalloc(&values, sizeof host));
  REQUIRE(cudaMalloc(&weights, sizeof weight));
  REQUIRE(cudaMalloc(&out, 32 * sizeof(float)));
  REQUIRE(cudaMemcpy(values, host, sizeof host, cudaMemcpyHostToDevice));
  REQUIRE(cudaMemcpy(weights, weight, sizeof weight, cudaMemcpyHostToDevice));
  weighted_sum<<<1, dim3(32, 16)>>>(values, weights, out, length);
  REQUIRE(cudaMemcpy(host, out, 32 * sizeof(float), cudaMemcpyDeviceToHost));
  return 0;
}
