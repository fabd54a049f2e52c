// A block writes its row, and after a barrier reads it through the read-only cache, which does not see the writes.
#include "require.cuh"

__global__ void smooth(float* row, const float* same_row) {
  row[threadIdx.x] = threadIdx.x + 1.0f;  // @other
  __syncthreads();
  float value = __ldg(same_row + (threadIdx.x ^ 1));  // @finding
  __syncthreads();
  row[threadIdx.x] = value * 2;
}

int main() {
  float* row;
  REQUIRE(cudaMalloc(&row, 64 * sizeof(float)));
  REQUIRE(cudaMemset(row, 0, 64 * sizeof(float)));
  smooth<<<1, 64>>>(row, row);
  cudaDeviceSynchronize();
  return 0;
}
