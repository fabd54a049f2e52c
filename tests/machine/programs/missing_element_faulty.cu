// One element in the middle of the output is left out, and the host copies it with the others.
#include "require.cuh"

__global__ void invert(const int* in, int* out) {
  int i = threadIdx.x;
  if (in[i] != 0) out[i] = 60 / in[i];
}

int main() {
  int *in, *out, host[64];
  for (int i = 0; i < 64; ++i) host[i] = i == 20 ? 0 : 1;
  REQUIRE(cudaMalloc(&in, sizeof host));
  REQUIRE(cudaMalloc(&out, sizeof host));
  REQUIRE(cudaMemcpy(in, host, sizeof host, cudaMemcpyHostToDevice));
  invert<<<1, 64>>>(in, out);
  REQUIRE(cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost));
  return 0;
}
