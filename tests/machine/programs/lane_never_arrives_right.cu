// A __syncwarp in one arm of a branch names the lanes of that arm only.
#include "require.cuh"

__global__ void half_warp(int* out) {
  __shared__ int tile[32];
  int lane = threadIdx.x;
  tile[lane] = lane;
  if (lane < 16) {
    __syncwarp(0x0000ffffu);
    out[lane] = tile[lane ^ 1];
  }
  __syncthreads();
  if (lane >= 16) out[lane] = tile[lane];
}

int main() {
  int *out, host[32];
  REQUIRE(cudaMalloc(&out, sizeof host));
  half_warp<<<1, 32>>>(out);
  REQUIRE(cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost));
  return host[0] == 1 && host[31] == 31 ? 0 : 4;
}
