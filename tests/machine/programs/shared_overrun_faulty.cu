// The tile of keys is one row short: row 8 of the loop lies in the next __shared__ variable, so the sum takes
// bytes of another object. Every address is inside the block's shared memory.
#include "require.cuh"

__global__ void column_sums(const float* in, float* out) {
  __shared__ float keys[8][32];
  __shared__ float bias[32];
  int lane = threadIdx.x;
  for (int row = 0; row < 8; ++row) keys[row][lane] = in[row * 32 + lane];
  bias[lane] = 1.0f;
  __syncthreads();
  float sum = bias[31 - lane];
  const float* column = &keys[0][lane];
  for (int row = 0; row <= 8; ++row) sum += column[row * 32];  // @finding
  out[lane] = sum;
}

int main() {
  float *in, *out, host[256];
  for (int i = 0; i < 256; ++i) host[i] = float(i % 7);
  REQUIRE(cudaMalloc(&in, sizeof host));
  REQUIRE(cudaMalloc(&out, 32 * sizeof(float)));
  REQUIRE(cudaMemcpy(in, host, sizeof host, cudaMemcpyHostToDevice));
  column_sums<<<1, 32>>>(in, out);
  cudaDeviceSynchronize();
  return 0;
}
