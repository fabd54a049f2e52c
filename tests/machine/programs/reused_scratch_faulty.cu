// The scratch of a block reduction is used for a second sum while slow warps still read the first.
#include "require.cuh"

__device__ float block_sum(float value, float* scratch) {
  for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(0xffffffffu, value, step);
  if (threadIdx.x % 32 == 0) scratch[threadIdx.x / 32] = value;  // @finding
  __syncthreads();
  return scratch[0] + scratch[1] + scratch[2] + scratch[3];  // @other
}

__global__ void normalise(const float* in, float* out) {
  __shared__ float scratch[4];
  float value = in[threadIdx.x];
  float mean = block_sum(value, scratch) / 128.0f;
  float variance = block_sum((value - mean) * (value - mean), scratch) / 128.0f;
  out[threadIdx.x] = (value - mean) / sqrtf(variance);
}

int main() {
  float *in, *out, host[128];
  for (int i = 0; i < 128; ++i) host[i] = i % 2 ? 1.0f : -1.0f;
  REQUIRE(cudaMalloc(&in, sizeof host));
  REQUIRE(cudaMalloc(&out, sizeof host));
  REQUIRE(cudaMemcpy(in, host, sizeof host, cudaMemcpyHostToDevice));
  normalise<<<1, 128>>>(in, out);
  REQUIRE(cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost));
  return 0;
}
