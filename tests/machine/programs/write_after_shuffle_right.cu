// As its faulty twin, with a __syncwarp() between the reads and the stores.
#include "require.cuh"

__global__ void total(const float* in, float* out) {
  __shared__ float part[32];
  float value = in[threadIdx.x];
  if (threadIdx.x < 32) part[threadIdx.x] = 0;
  __syncthreads();
  for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(0xffffffffu, value, step);
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = value;
  __syncthreads();
  if (threadIdx.x < 32) {
    value = part[threadIdx.x ^ 1];
    for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(0xffffffffu, value, step);
    __syncwarp();
    part[threadIdx.x] = value;
  }
  __syncthreads();
  out[threadIdx.x] = part[threadIdx.x % 32];
}

int main() {
  float *in, *out;
  REQUIRE(cudaMalloc(&in, 128 * sizeof(float)));
  REQUIRE(cudaMalloc(&out, 128 * sizeof(float)));
  REQUIRE(cudaMemset(in, 0, 128 * sizeof(float)));
  total<<<1, 128>>>(in, out);
  cudaDeviceSynchronize();
  return 0;
}
