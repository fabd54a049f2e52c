// Two functions that lanes of one warp call by address write the same words of shared memory, without a barrier between.
#include "require.cuh"

__shared__ int scratch[32];
__noinline__ __device__ void put(int t) { scratch[t & 15] = t; }           // @finding
__noinline__ __device__ void put_double(int t) { scratch[t & 15] = 2 * t; }  // @other
__device__ void (*table[2])(int) = {put, put_double};

__global__ void call_all(int* out) {
  const int t = threadIdx.x;
  table[t >> 4](t);
  __syncthreads();
  out[t] = scratch[t & 15];
}

int main() {
  int *out, host[32];
  REQUIRE(cudaMalloc(&out, sizeof host));
  call_all<<<1, 32>>>(out);
  REQUIRE(cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost));
  return 0;
}
