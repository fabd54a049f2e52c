// The lanes of the first warp read the partial sums, add them up by shuffles, and each stores the total over the first of
// them. Only the shuffles keep a store behind another lane's read, and shuffles order no memory: a warning.
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
    value = part[threadIdx.x ^ 1];  // @other
    for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(0xffffffffu, value, step);
    part[threadIdx.x] = value;  // @finding
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
