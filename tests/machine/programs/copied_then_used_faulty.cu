// Elements with padding are staged through shared memory, and what was padding is added to what the host reads. Its right twin is padded_struct_right.
#include "require.cuh"

__global__ void stage_and_add(const uint2* in, unsigned* out) {
  __shared__ uint2 tile[64];
  tile[threadIdx.x] = in[threadIdx.x];  // @finding
  __syncthreads();
  out[threadIdx.x] = 1 + tile[63 - threadIdx.x].y;
}

int main() {
  uint2* in;
  unsigned *out, host[64];
  REQUIRE(cudaMalloc(&in, 64 * sizeof(uint2)));
  REQUIRE(cudaMalloc(&out, 64 * sizeof(unsigned)));
  REQUIRE(cudaMemset2D(in, sizeof(uint2), 0, 6, 64));
  stage_and_add<<<1, 64>>>(in, out);
  REQUIRE(cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost));
  return 0;
}
