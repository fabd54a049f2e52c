// A cuda::barrier expects one arrival more than the block has threads: everybody waits.
#include "require.cuh"

#include <cuda/barrier>
#include <cuda/std/utility>

using block_barrier = cuda::barrier<cuda::thread_scope_block>;

__global__ void meet(int* out) {
#pragma nv_diag_suppress static_var_with_dynamic_init
  __shared__ block_barrier everyone;
  if (threadIdx.x == 0) init(&everyone, blockDim.x + 1);
  __syncthreads();
  everyone.arrive_and_wait();  // @finding
  out[threadIdx.x] = 1;
}

int main() {
  int *out, host[64];
  REQUIRE(cudaMalloc(&out, sizeof host));
  meet<<<1, 64>>>(out);
  cudaDeviceSynchronize();
  return 0;
}
