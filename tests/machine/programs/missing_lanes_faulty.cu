// A kernel stores one of four elements, as if it stored a vector.
#include "require.cuh"

__global__ void fill(float* out) { out[4 * threadIdx.x] = threadIdx.x; }

int main() {
  float *out, host[256];
  REQUIRE(cudaMalloc(&out, sizeof host));
  fill<<<1, 64>>>(out);
  REQUIRE(cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost));
  return host[4] == 1 ? 0 : 4;
}
