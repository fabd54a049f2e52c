// A block writes its row and reads it plainly after a barrier. What it reads through the read-only cache, nobody writes.
#include "require.cuh"

__global__ void smooth(float* row, const float* __restrict__ factor) {
  row[threadIdx.x] = threadIdx.x + 1.0f;
  __syncthreads();
  float value = row[threadIdx.x ^ 1];
  __syncthreads();
  row[threadIdx.x] = value * __ldg(factor + threadIdx.x);
}

int main() {
  float *both, host[64];
  REQUIRE(cudaMalloc(&both, 128 * sizeof(float)));
  REQUIRE(cudaMemset(both, 0, 128 * sizeof(float)));
  smooth<<<1, 64>>>(both, both + 64);
  REQUIRE(cudaMemcpy(host, both, sizeof host, cudaMemcpyDeviceToHost));
  return host[5] == 0.0f ? 0 : 4;
}
