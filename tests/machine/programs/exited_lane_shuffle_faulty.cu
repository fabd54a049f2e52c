// A warp whose upper lanes have returned goes on to reduce over all 32: what the exited lanes are asked for is undefined.
#include "require.cuh"

__global__ void reduce(const float* in, float* out, int n) {
  if (threadIdx.x >= n) return;
  float sum = in[threadIdx.x];
  for (int step = 16; step > 0; step /= 2) sum += __shfl_down_sync(0xffffffffu, sum, step);  // @finding
  if (threadIdx.x == 0) *out = sum;
}

int main() {
  float *in, *out, host;
  REQUIRE(cudaMalloc(&in, 20 * sizeof *in));
  REQUIRE(cudaMalloc(&out, sizeof *out));
  REQUIRE(cudaMemset(in, 0, 20 * sizeof *in));
  reduce<<<1, 32>>>(in, out, 20);
  REQUIRE(cudaMemcpy(&host, out, sizeof host, cudaMemcpyDeviceToHost));
  return 0;
}
