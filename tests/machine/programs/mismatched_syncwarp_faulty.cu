// Two branches synchronise a warp, one with a mask that leaves the other's lanes out; a shuffle of all follows.
#include "require.cuh"

__global__ void reverse(int* data) {
  __shared__ int shared[32];
  int lane = threadIdx.x;
  shared[lane] = data[lane];
  if (lane < 16) {
    __syncwarp();
    data[lane] = shared[lane ^ 1];
  } else {
    __syncwarp(0xffff0000u);  // @other
    data[lane] = shared[lane ^ 1];
  }
  __syncwarp();  // @finding
  data[lane] += shared[lane ^ 1];
}

int main() {
  int *data, host[32] = {};
  REQUIRE(cudaMalloc(&data, sizeof host));
  REQUIRE(cudaMemcpy(data, host, sizeof host, cudaMemcpyHostToDevice));
  reverse<<<1, 32>>>(data);
  cudaDeviceSynchronize();
  return 0;
}
