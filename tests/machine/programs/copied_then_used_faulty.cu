// Unwritten bytes are staged through shared memory. The copy is innocent; the addition that reads the staged
// value is not.
#include "require.cuh"

__global__ void stage_and_add(const float* in, float* out) {
  __shared__ float tile[64];
  tile[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  out[threadIdx.x] = 1.0f + tile[63 - threadIdx.x];  // @finding
}

int main() {
  float *in, *out;
  REQUIRE(cudaMalloc(&in, 64 * sizeof(float)));
  REQUIRE(cudaMalloc(&out, 64 * sizeof(float)));
  REQUIRE(cudaMemset(in, 0, 60 * sizeof(float)));
  stage_and_add<<<1, 64>>>(in, out);
  cudaDeviceSynchronize();
  return 0;
}
