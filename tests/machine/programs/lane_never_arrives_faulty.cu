// A __syncwarp names all lanes, and half of them wait at the block barrier instead.
#include "require.cuh"

__global__ void half_warp(int* out) {
  __shared__ int tile[32];
  int lane = threadIdx.x;
  tile[lane] = lane;
  if (lane < 16) {
    __syncwarp(0xffffffffu);  // @finding
    out[lane] = tile[lane ^ 1];
  }
  __syncthreads();  // @finding
  if (lane >= 16) out[lane] = tile[lane];
}

int main() {
  int *out, host[32];
  REQUIRE(cudaMalloc(&out, sizeof host));
  half_warp<<<1, 32>>>(out);
  cudaDeviceSynchronize();
  return 0;
}
