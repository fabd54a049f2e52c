// A lane calls a shuffle whose mask does not name it.
#include "require.cuh"

__global__ void sum_low(const int* in, int* out) {
  int lane = threadIdx.x, value = in[lane];
  value += __shfl_xor_sync(0x0000ffffu, value, 1);  // @finding
  out[lane] = value;
}

int main() {
  int *in, *out, host[32];
  for (int i = 0; i < 32; ++i) host[i] = i;
  REQUIRE(cudaMalloc(&in, sizeof host));
  REQUIRE(cudaMalloc(&out, sizeof host));
  REQUIRE(cudaMemcpy(in, host, sizeof host, cudaMemcpyHostToDevice));
  sum_low<<<1, 32>>>(in, out);
  cudaDeviceSynchronize();
  return 0;
}
