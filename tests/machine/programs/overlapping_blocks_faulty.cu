// Tiles of neighbouring blocks overlap by one element, and both write it, with different values.
#include "require.cuh"

__global__ void label(int* out) {
  int first = blockIdx.x * 31;
  out[first + threadIdx.x] = blockIdx.x;  // @finding
}

int main() {
  int *out, host[8 * 32];
  REQUIRE(cudaMalloc(&out, sizeof host));
  REQUIRE(cudaMemset(out, 0, sizeof host));
  label<<<8, 32>>>(out);
  REQUIRE(cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost));
  return 0;
}
