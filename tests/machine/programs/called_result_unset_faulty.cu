// Functions in a table, one of which gives back an element that nobody has set; its caller decides by it.
#include "require.cuh"

using Number = int (*)(int, int);
__noinline__ __device__ int set(int n, int t) {
  int own[8];
  for (int i = 0; i < 8; ++i) own[i] = n * i;
  return own[t & 7];
}
__noinline__ __device__ int half_set(int n, int t) {
  int own[8];
  for (int i = 0; i < 4; ++i) own[i] = n * i;
  return own[t & 7];  // @finding
}
__device__ Number table[2] = {set, half_set};

__global__ void call_all(int* out, int n) {
  const int t = threadIdx.x;
  const int got = table[t >> 4 & 1](n, t);
  out[t] = got > 3 ? 1 : 2;
}

int main() {
  int *out, host[32];
  REQUIRE(cudaMalloc(&out, sizeof host));
  call_all<<<1, 32>>>(out, 2);
  REQUIRE(cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost));
  return 0;
}
