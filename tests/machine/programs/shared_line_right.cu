// Neighbouring threads and neighbouring blocks write different bytes of one 32-byte sector, and all read one
// value: no byte is contended.
#include "require.cuh"

__global__ void interleave(const int* bias, signed char* out) {
  out[threadIdx.x * gridDim.x + blockIdx.x] = static_cast<signed char>(*bias + blockIdx.x);
}

int main() {
  int *bias, one = 1;
  signed char *out, host[4 * 64];
  REQUIRE(cudaMalloc(&bias, sizeof one));
  REQUIRE(cudaMalloc(&out, sizeof host));
  REQUIRE(cudaMemcpy(bias, &one, sizeof one, cudaMemcpyHostToDevice));
  interleave<<<4, 64>>>(bias, out);
  REQUIRE(cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost));
  for (int i = 0; i < 4 * 64; ++i)
    if (host[i] != 1 + i % 4) return 4;
  return 0;
}
