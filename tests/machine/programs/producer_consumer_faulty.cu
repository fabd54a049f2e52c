// One warp produces, one consumes, a cuda::barrier says "full" and nothing says "empty": the producer refills
// the stage while it is still read.
#include "require.cuh"

#include <cooperative_groups.h>
#include <cuda/barrier>
#include <cuda/std/utility>

using block_barrier = cuda::barrier<cuda::thread_scope_block>;
constexpr int rounds = 5;

__global__ void relay(const float* in, float* out) {
  __shared__ float stage[32];
#pragma nv_diag_suppress static_var_with_dynamic_init
  __shared__ block_barrier full, empty;
  int lane = threadIdx.x % 32;
  if (threadIdx.x == 0) {
    init(&full, 64);
    init(&empty, 64);
  }
  __syncthreads();
  if (threadIdx.x < 32) {
    for (int i = 0; i < rounds; ++i) {
      stage[lane] = in[i * 32 + lane];  // @finding
      full.arrive_and_wait();
    }
  } else {
    float sum = 0.0f;
    for (int i = 0; i < rounds; ++i) {
      full.arrive_and_wait();
      sum += stage[31 - lane];  // @other
    }
    out[lane] = sum;
  }
}

int main() {
  float *in, *out, host[rounds * 32];
  for (float& v : host) v = 1.0f;
  REQUIRE(cudaMalloc(&in, sizeof host));
  REQUIRE(cudaMalloc(&out, 32 * sizeof(float)));
  REQUIRE(cudaMemcpy(in, host, sizeof host, cudaMemcpyHostToDevice));
  relay<<<1, 64>>>(in, out);
  cudaDeviceSynchronize();
  return 0;
}
