// Both halves of a pair are added up, and only one of them was written.
#include <cuda_fp16.h>

#include "require.cuh"

__global__ void add_pairs(const unsigned short* in, float* out) {
  __shared__ __half2 pairs[32];
  int t = threadIdx.x;
  pairs[t].x = __ushort_as_half(in[t]);
  __syncwarp();
  __half2 pair = pairs[31 - t];  // @finding
  out[t] = __low2float(pair) + __high2float(pair);
}

int main() {
  unsigned short *in, host[32];
  float *out, sums[32];
  for (int i = 0; i < 32; ++i) host[i] = 0x3c00;
  REQUIRE(cudaMalloc(&in, sizeof host));
  REQUIRE(cudaMalloc(&out, sizeof sums));
  REQUIRE(cudaMemcpy(in, host, sizeof host, cudaMemcpyHostToDevice));
  add_pairs<<<1, 32>>>(in, out);
  REQUIRE(cudaMemcpy(sums, out, sizeof sums, cudaMemcpyDeviceToHost));
  return 0;
}
