// Each arm of a divergent branch synchronises its own lanes through shared memory with a mask of just them.
#include "require.cuh"

__global__ void two_arms(int* out) {
  __shared__ int tile[32];
  int lane = threadIdx.x;
  if (lane % 3 == 0) {
    unsigned mask = 0x49249249u;
    tile[lane] = lane;
    __syncwarp(mask);
    out[lane] = tile[lane == 30 ? 0 : lane + 3];
  } else {
    unsigned mask = ~0x49249249u;
    tile[lane] = 100 + lane;
    __syncwarp(mask);
    out[lane] = tile[lane % 3 == 1 ? min(lane + 1, 31) : lane - 1];
  }
}

int main() {
  int *out, host[32];
  REQUIRE(cudaMalloc(&out, sizeof host));
  two_arms<<<1, 32>>>(out);
  REQUIRE(cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost));
  return host[0] == 3 && host[30] == 0 && host[1] == 102 && host[2] == 101 && host[31] == 131 ? 0 : 4;
}
