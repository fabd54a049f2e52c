// The workspace is freed after the kernel that reads it has finished.
#include "require.cuh"

__global__ void copy(const float* workspace, float* out) {
  out[threadIdx.x] = workspace[threadIdx.x];
}

int main() {
  float *workspace, *out, host[64];
  REQUIRE(cudaMalloc(&workspace, sizeof host));
  REQUIRE(cudaMalloc(&out, sizeof host));
  REQUIRE(cudaMemset(workspace, 0, sizeof host));
  copy<<<1, 64>>>(workspace, out);
  REQUIRE(cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost));
  REQUIRE(cudaFree(workspace));
  for (int i = 0; i < 64; ++i)
    if (host[i] != 0.0f) return 4;
  return 0;
}
