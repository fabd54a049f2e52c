// Two streams run the same kernel with one workspace between them.
#include "require.cuh"

__global__ void through_workspace(int* workspace, int* out, int value) {
  workspace[threadIdx.x] = value;  // @finding
  __syncthreads();
  out[threadIdx.x] = workspace[63 - threadIdx.x];
}

int main() {
  cudaStream_t streams[2];
  int *workspace, *out, host[128];
  REQUIRE(cudaMalloc(&workspace, sizeof host));
  REQUIRE(cudaMalloc(&out, sizeof host));
  for (int s = 0; s < 2; ++s) {
    REQUIRE(cudaStreamCreateWithFlags(&streams[s], cudaStreamNonBlocking));
    through_workspace<<<1, 64, 0, streams[s]>>>(workspace, out + 64 * s, s);
  }
  REQUIRE(cudaDeviceSynchronize());
  REQUIRE(cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost));
  return 0;
}
