// A block of 1000 threads (32 warps, the last of eight lanes) reduces through shared memory.
#include "require.cuh"

__global__ void block_sum(const int* in, int* out) {
  __shared__ int partial[32];
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  unsigned mask = warp == 31 ? 0xffu : 0xffffffffu;
  int value = in[threadIdx.x];
  for (int step = warp == 31 ? 4 : 16; step > 0; step /= 2) value += __shfl_xor_sync(mask, value, step);
  if (lane == 0) partial[warp] = value;
  __syncthreads();
  if (warp == 0) {
    value = partial[lane];
    for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(0xffffffffu, value, step);
    if (lane == 0) *out = value;
  }
}

int main() {
  int *in, *out, host[1000], sum;
  for (int& v : host) v = 3;
  REQUIRE(cudaMalloc(&in, sizeof host));
  REQUIRE(cudaMalloc(&out, sizeof(int)));
  REQUIRE(cudaMemcpy(in, host, sizeof host, cudaMemcpyHostToDevice));
  block_sum<<<1, 1000>>>(in, out);
  REQUIRE(cudaMemcpy(&sum, out, sizeof sum, cudaMemcpyDeviceToHost));
  return sum == 3000 ? 0 : 4;
}
