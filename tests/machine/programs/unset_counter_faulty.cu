// A counter is counted up and read, and nobody has set it to zero.
#include "require.cuh"

__global__ void count_positive(const int* in, int* counter) {
  if (in[threadIdx.x] > 0) atomicAdd(counter, 1);  // @finding
}

int main() {
  int *in, *counter, host[32];
  for (int i = 0; i < 32; ++i) host[i] = i % 2;
  REQUIRE(cudaMalloc(&in, sizeof host));
  REQUIRE(cudaMalloc(&counter, sizeof(int)));
  REQUIRE(cudaMemcpy(in, host, sizeof host, cudaMemcpyHostToDevice));
  count_positive<<<1, 32>>>(in, counter);
  REQUIRE(cudaMemcpy(host, counter, sizeof(int), cudaMemcpyDeviceToHost));
  return 0;
}
