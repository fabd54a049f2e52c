// Launches with ever more shared memory, in which every warp keeps to a slice of its own. What a check remembers of a
// smaller launch is not the new one's.
#include "require.cuh"

__global__ void count_up(int* out) {
  extern __shared__ int tile[];
  const int slice = gridDim.y * 32, lane = threadIdx.x % 32;
  int* const own = tile + threadIdx.x / 32 * slice;
  for (int i = lane; i < slice; i += 32) own[i] = i;
  for (int round = 0; round < 4; ++round) {
    for (int i = lane; i < slice; i += 32) own[i] += 1;
  }
  if (blockIdx.y == 0) out[threadIdx.x] = own[slice - 32 + lane];
}

int main() {
  int *out, host[128];
  REQUIRE(cudaMalloc(&out, sizeof host));
  for (int rows = 1; rows <= 64; rows *= 2) {
    count_up<<<dim3(1, rows), 128, 128 * rows * sizeof(int)>>>(out);
    REQUIRE(cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost));
    for (int i = 0; i < 128; ++i) {
      if (host[i] != rows * 32 - 32 + i % 32 + 4) return 4;
    }
  }
  return 0;
}
