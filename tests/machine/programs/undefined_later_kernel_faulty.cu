// The first kernel passes on a maximum of what nobody wrote; the second decides by it.
#include "require.cuh"

__global__ void find_maximum(const float* in, float* maximum) {
  float value = in[threadIdx.x];  // @finding
  for (int step = 16; step > 0; step /= 2) value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, step));
  if (threadIdx.x == 0) *maximum = value;
}

__global__ void clip(const float* maximum, int* clipped) {
  if (*maximum > 2.0f) *clipped = 1;  // @other
}

int main() {
  float *in, *maximum;
  int* clipped;
  REQUIRE(cudaMalloc(&in, 32 * sizeof(float)));
  REQUIRE(cudaMalloc(&maximum, sizeof(float)));
  REQUIRE(cudaMalloc(&clipped, sizeof(int)));
  REQUIRE(cudaMemset(in, 0, 31 * sizeof(float)));
  find_maximum<<<1, 32>>>(in, maximum);
  clip<<<1, 1>>>(maximum, clipped);
  cudaDeviceSynchronize();
  return 0;
}
