// A named barrier is given a thread count that is no multiple of the warp size.
#include "require.cuh"

__global__ void half_block(const int* count, int* out) {
  __shared__ int tile[64];
  int t = threadIdx.x;
  if (t < 64) {
    tile[t] = t;
    asm volatile("bar.sync 1, %0;" ::"r"(count[0]) : "memory");  // @finding
    out[t] = tile[63 - t];
  }
}

int main() {
  const int count = 60;
  int *device, *out, host[64];
  REQUIRE(cudaMalloc(&device, sizeof count));
  REQUIRE(cudaMalloc(&out, sizeof host));
  REQUIRE(cudaMemcpy(device, &count, sizeof count, cudaMemcpyHostToDevice));
  half_block<<<1, 128>>>(device, out);
  cudaDeviceSynchronize();
  return 0;
}
