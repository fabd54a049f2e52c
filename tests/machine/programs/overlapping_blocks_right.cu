// Tiles of neighbouring blocks touch and do not overlap.
#include "require.cuh"

__global__ void label(int* out) {
  int first = blockIdx.x * 32;
  out[first + threadIdx.x] = blockIdx.x;
}

int main() {
  int *out, host[8 * 32];
  REQUIRE(cudaMalloc(&out, sizeof host));
  REQUIRE(cudaMemset(out, 0, sizeof host));
  label<<<8, 32>>>(out);
  REQUIRE(cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost));
  return host[31] == 0 && host[32] == 1 && host[255] == 7 ? 0 : 4;
}
