// Each block leaves a partial, takes a ticket and the last one sums them, but nothing orders a partial before
// its ticket: the __threadfence is missing on both sides.
#include "require.cuh"

__device__ unsigned tickets = 0;

__global__ void total(const float* in, float* partial, float* out) {
  __shared__ bool last;
  float value = in[blockIdx.x * 32 + threadIdx.x];
  for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(0xffffffffu, value, step);
  if (threadIdx.x == 0) {
    partial[blockIdx.x] = value;  // @other
    last = atomicAdd(&tickets, 1u) == gridDim.x - 1;
  }
  __syncthreads();
  if (!last) return;
  float sum = threadIdx.x < gridDim.x ? partial[threadIdx.x] : 0.0f;  // @finding
  for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
  if (threadIdx.x == 0) {
    *out = sum;
    tickets = 0;
  }
}

int main() {
  constexpr int blocks = 20;
  float *in, *partial, *out, host[blocks * 32], sum;
  for (float& v : host) v = 1.0f;
  REQUIRE(cudaMalloc(&in, sizeof host));
  REQUIRE(cudaMalloc(&partial, blocks * sizeof(float)));
  REQUIRE(cudaMalloc(&out, sizeof(float)));
  REQUIRE(cudaMemcpy(in, host, sizeof host, cudaMemcpyHostToDevice));
  for (int repeat = 0; repeat < 2; ++repeat) {
    total<<<blocks, 32>>>(in, partial, out);
    REQUIRE(cudaMemcpy(&sum, out, sizeof sum, cudaMemcpyDeviceToHost));
  }
  return 0;
}
