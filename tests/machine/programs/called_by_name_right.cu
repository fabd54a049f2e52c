// Lanes of one warp come to the same call of a function in several steps, and all meet at the barrier in it.
#include "require.cuh"

__shared__ int scratch[64];
__noinline__ __device__ void meet() { __syncthreads(); }
__noinline__ __device__ int spin(int turns) {
  int sum = 0;
  for (int k = 0; k < turns; ++k) sum += k & 3;
  return sum;
}

__global__ void call_all(int* out) {
  const int t = threadIdx.x;
  int sum = 0;
  if (t % 3 == 1) sum = spin(100 * t);
  scratch[t] = t + (sum < 0);
  meet();
  out[t] = scratch[63 - t];
}

int main() {
  int *out, host[64];
  REQUIRE(cudaMalloc(&out, sizeof host));
  call_all<<<1, 64>>>(out);
  REQUIRE(cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost));
  for (int t = 0; t < 64; ++t)
    if (host[t] != 63 - t) return 9;
  return 0;
}
