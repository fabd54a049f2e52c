// A loop with a barrier inside runs as often as the row is long: the warps of short rows wait at the barrier behind it.
#include "require.cuh"

__global__ void rows(const int* lengths, int* out) {
  __shared__ int seen[4];
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32, sum = 0;
  int length = lengths[warp];
#pragma unroll 1
  for (int i = 0; i < length; ++i) {  // @other
    if (lane == 0) seen[warp] = i;
    __syncthreads();  // @finding
    sum += seen[(warp + 1) % 4];
    __syncthreads();
  }
  asm volatile("bar.sync 1;" ::: "memory");
  out[threadIdx.x] = sum;
}

int main() {
  const int lengths[4] = {4, 4, 2, 3};
  int *device, *out, host[128];
  REQUIRE(cudaMalloc(&device, sizeof lengths));
  REQUIRE(cudaMalloc(&out, sizeof host));
  REQUIRE(cudaMemcpy(device, lengths, sizeof lengths, cudaMemcpyHostToDevice));
  rows<<<1, 128>>>(device, out);
  cudaDeviceSynchronize();
  return 0;
}
