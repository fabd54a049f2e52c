// A counter in shared memory that thread 0 sets to zero, a barrier, then atomics of all; the warps count once more with a
// counter of their own, which a lane sets and covers before a __syncwarp, and a plain store after the atomics is ordered too.
#include "require.cuh"

__global__ void count(const int* in, int* out) {
  __shared__ int above;
  __shared__ int of_warp[2];
  if (threadIdx.x == 0) {
    above = 0;
    atomicAdd(&above, 1);
  }
  if (threadIdx.x % 32 == 0) {
    of_warp[threadIdx.x / 32] = 0;
    atomicAdd(&of_warp[threadIdx.x / 32], 1);
  }
  __syncwarp();
  atomicAdd(&of_warp[threadIdx.x / 32], 1);
  __syncthreads();
  if (in[threadIdx.x] > 0) atomicAdd(&above, 1);
  __syncthreads();
  if (threadIdx.x == 0) *out = above + of_warp[0] + of_warp[1];
}

int main() {
  int *in, *out, host[64], sum;
  for (int& v : host) v = 1;
  REQUIRE(cudaMalloc(&in, sizeof host));
  REQUIRE(cudaMalloc(&out, sizeof(int)));
  REQUIRE(cudaMemcpy(in, host, sizeof host, cudaMemcpyHostToDevice));
  count<<<1, 64>>>(in, out);
  REQUIRE(cudaMemcpy(&sum, out, sizeof sum, cudaMemcpyDeviceToHost));
  return 0;
}
