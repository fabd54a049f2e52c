// Two warps add to a volatile counter in shared memory, without an atomic or a lock.
#include "require.cuh"

__global__ void count(int* out) {
  __shared__ volatile int hits;
  if (threadIdx.x == 0) hits = 0;
  __syncthreads();
  if (threadIdx.x % 32 == 0) hits = hits + 1;  // @finding
  __syncthreads();
  out[threadIdx.x] = hits;
}

int main() {
  int* out;
  REQUIRE(cudaMalloc(&out, 64 * sizeof(int)));
  count<<<1, 64>>>(out);
  cudaDeviceSynchronize();
  return 0;
}
