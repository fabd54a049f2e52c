// An exchange sets the counter and drops what was there, for all lanes of a warp at once.
#include "require.cuh"

__global__ void count_positive(const int* in, int* counter, int* flags) {
  if (threadIdx.x < 32) atomicExch(counter, 0);
  atomicAnd(&flags[threadIdx.x], 0);
  __syncthreads();
  if (in[threadIdx.x] > 0) atomicAdd(counter, 1);
}

int main() {
  int *in, *counter, *flags, host[64];
  for (int i = 0; i < 64; ++i) host[i] = i % 2;
  REQUIRE(cudaMalloc(&in, sizeof host));
  REQUIRE(cudaMalloc(&counter, sizeof(int)));
  REQUIRE(cudaMalloc(&flags, sizeof host));
  REQUIRE(cudaMemcpy(in, host, sizeof host, cudaMemcpyHostToDevice));
  count_positive<<<1, 64>>>(in, counter, flags);
  REQUIRE(cudaMemcpy(host, flags, sizeof host, cudaMemcpyDeviceToHost));
  if (host[0] != 0 || host[63] != 0) return 4;
  REQUIRE(cudaMemcpy(host, counter, sizeof(int), cudaMemcpyDeviceToHost));
  return host[0] == 32 ? 0 : 4;
}
