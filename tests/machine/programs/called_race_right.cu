// As the faulty twin, but each function writes words of its own, and all meet at a barrier in a function called by address.
#include "require.cuh"

__shared__ int scratch[32];
__noinline__ __device__ void put(int t) { scratch[t] = t; }
__noinline__ __device__ void put_double(int t) { scratch[t] = 2 * t; }
__noinline__ __device__ void meet(int) { __syncthreads(); }
__device__ void (*table[3])(int) = {put, put_double, meet};

__global__ void call_all(int* out) {
  const int t = threadIdx.x;
  table[t & 1](t);
  table[2](t);
  out[t] = scratch[31 - t];
}

int main() {
  int *out, host[32];
  REQUIRE(cudaMalloc(&out, sizeof host));
  call_all<<<1, 32>>>(out);
  REQUIRE(cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost));
  for (int t = 0; t < 32; ++t)
    if (host[t] != ((31 - t) & 1 ? 2 : 1) * (31 - t)) return 9;
  return 0;
}
