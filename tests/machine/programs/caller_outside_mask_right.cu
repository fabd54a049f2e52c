// Every lane that calls the shuffle is named in its mask.
#include "require.cuh"

__global__ void sum_low(const int* in, int* out) {
  int lane = threadIdx.x, value = in[lane];
  if (lane < 16) value += __shfl_xor_sync(0x0000ffffu, value, 1);
  out[lane] = value;
}

int main() {
  int *in, *out, host[32];
  for (int i = 0; i < 32; ++i) host[i] = i;
  REQUIRE(cudaMalloc(&in, sizeof host));
  REQUIRE(cudaMalloc(&out, sizeof host));
  REQUIRE(cudaMemcpy(in, host, sizeof host, cudaMemcpyHostToDevice));
  sum_low<<<1, 32>>>(in, out);
  REQUIRE(cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost));
  return host[0] == 1 && host[16] == 16 ? 0 : 4;
}
