// The workspace is freed before the kernel that reads it is launched.
#include "require.cuh"

__global__ void copy(const float* workspace, float* out) {
  out[threadIdx.x] = workspace[threadIdx.x];  // @finding
}

int main() {
  float *workspace, *out, host[64];
  REQUIRE(cudaMalloc(&workspace, sizeof host));
  REQUIRE(cudaMalloc(&out, sizeof host));
  REQUIRE(cudaMemset(workspace, 0, sizeof host));
  REQUIRE(cudaFree(workspace));
  copy<<<1, 64>>>(workspace, out);
  cudaDeviceSynchronize();
  return 0;
}
