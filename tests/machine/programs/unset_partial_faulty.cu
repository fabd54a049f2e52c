// An empty split returns before it writes its partial; the fixup kernel merges all splits and reads it.
#include "require.cuh"

__global__ void split_sum(const float* in, float* partial, int length) {
  int first = blockIdx.x * 32, lane = threadIdx.x;
  if (first >= length) return;
  float value = first + lane < length ? in[first + lane] : 0.0f;
  for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(0xffffffffu, value, step);
  if (lane == 0) partial[blockIdx.x] = value;
}

__global__ void fixup(const float* partial, float* out, int splits) {
  float sum = 0.0f;
  for (int s = 0; s < splits; ++s) sum += partial[s];  // @finding
  *out = sum;
}

int main() {
  constexpr int length = 70, splits = 4;
  float *in, *partial, *out, host[length], sum;
  for (float& v : host) v = 1.0f;
  REQUIRE(cudaMalloc(&in, sizeof host));
  REQUIRE(cudaMalloc(&partial, splits * sizeof(float)));
  REQUIRE(cudaMalloc(&out, sizeof(float)));
  REQUIRE(cudaMemcpy(in, host, sizeof host, cudaMemcpyHostToDevice));
  split_sum<<<splits, 32>>>(in, partial, length);
  fixup<<<1, 1>>>(partial, out, splits);
  REQUIRE(cudaMemcpy(&sum, out, sizeof sum, cudaMemcpyDeviceToHost));
  return 0;
}
