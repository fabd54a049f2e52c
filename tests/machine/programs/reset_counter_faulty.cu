// Block 0 resets the counter with a plain store while other blocks already count on it.
#include "require.cuh"

__global__ void count_positive(const int* in, unsigned* counter) {
  if (blockIdx.x == 0 && threadIdx.x == 0) *counter = 0;  // @finding
  __syncthreads();
  if (in[blockIdx.x * 64 + threadIdx.x] > 0) atomicAdd(counter, 1u);
}

int main() {
  constexpr int n = 8 * 64;
  int *in, host[n];
  unsigned *counter, count = 0;
  for (int i = 0; i < n; ++i) host[i] = i % 2;
  REQUIRE(cudaMalloc(&in, sizeof host));
  REQUIRE(cudaMalloc(&counter, sizeof count));
  REQUIRE(cudaMemcpy(in, host, sizeof host, cudaMemcpyHostToDevice));
  REQUIRE(cudaMemset(counter, 0, sizeof count));
  count_positive<<<8, 64>>>(in, counter);
  REQUIRE(cudaMemcpy(&count, counter, sizeof count, cudaMemcpyDeviceToHost));
  return 0;
}
