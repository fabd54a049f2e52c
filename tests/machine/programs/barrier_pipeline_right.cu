// Copies that complete on a cuda::barrier, and consumers that wait on it.
#include "require.cuh"

#include <cooperative_groups.h>
#include <cuda/barrier>

using block_barrier = cuda::barrier<cuda::thread_scope_block>;

__global__ void reverse(const float* in, float* out) {
  __shared__ float tile[128];
#pragma nv_diag_suppress static_var_with_dynamic_init
  __shared__ block_barrier ready;
  auto block = cooperative_groups::this_thread_block();
  if (threadIdx.x == 0) init(&ready, blockDim.x);
  block.sync();
  cuda::memcpy_async(&tile[threadIdx.x], &in[threadIdx.x], sizeof(float), ready);
  ready.arrive_and_wait();
  out[threadIdx.x] = tile[127 - threadIdx.x];
}

int main() {
  float *in, *out, host[128];
  for (int i = 0; i < 128; ++i) host[i] = float(i);
  REQUIRE(cudaMalloc(&in, sizeof host));
  REQUIRE(cudaMalloc(&out, sizeof host));
  REQUIRE(cudaMemcpy(in, host, sizeof host, cudaMemcpyHostToDevice));
  reverse<<<1, 128>>>(in, out);
  REQUIRE(cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost));
  for (int i = 0; i < 128; ++i)
    if (host[i] != float(127 - i)) return 4;
  return 0;
}
