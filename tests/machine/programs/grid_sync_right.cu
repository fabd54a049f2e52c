// A cooperative kernel with grid.sync() between the phases.
#include "require.cuh"

#include <cooperative_groups.h>

__global__ void rotate(const int* in, int* between, int* out, int n) {
  int i = blockIdx.x * 64 + threadIdx.x;
  between[i] = in[i] + 1;
  cooperative_groups::this_grid().sync();
  out[i] = between[(i + 64) % n];
}

int main() {
  int n = 4 * 64;
  int *in, *between, *out, host[4 * 64];
  for (int i = 0; i < n; ++i) host[i] = i;
  REQUIRE(cudaMalloc(&in, sizeof host));
  REQUIRE(cudaMalloc(&between, sizeof host));
  REQUIRE(cudaMalloc(&out, sizeof host));
  REQUIRE(cudaMemcpy(in, host, sizeof host, cudaMemcpyHostToDevice));
  void* arguments[] = {&in, &between, &out, &n};
  REQUIRE(cudaLaunchCooperativeKernel(reinterpret_cast<const void*>(rotate), dim3(4), dim3(64), arguments, 0, 0));
  REQUIRE(cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost));
  return host[0] == 65 && host[n - 1] == 64 ? 0 : 4;
}
