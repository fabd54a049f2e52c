// Only some warps call the function in which the block synchronises.
#include "require.cuh"

__device__ __noinline__ int mirrored(int* tile, int value) {
  tile[threadIdx.x] = value;
  __syncthreads();  // @finding
  return tile[127 - threadIdx.x];
}

__global__ void head(const int* in, int* out, int length) {
  __shared__ int tile[128];
  int t = threadIdx.x, value = in[t];
  tile[t] = 0;
  if (t < length) value = mirrored(tile, value);  // @other
  out[t] = value;
}

int main() {
  int *in, *out;
  REQUIRE(cudaMalloc(&in, 128 * sizeof(int)));
  REQUIRE(cudaMalloc(&out, 128 * sizeof(int)));
  REQUIRE(cudaMemset(in, 0, 128 * sizeof(int)));
  head<<<1, 128>>>(in, out, 64);
  cudaDeviceSynchronize();
  return 0;
}
