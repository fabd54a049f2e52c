// Every element of the table is filled before a loop ends by what it holds.
#include "require.cuh"

__global__ void walk(const int* next, int* steps) {
  __shared__ int table[33];
  table[threadIdx.x] = next[threadIdx.x];
  if (threadIdx.x == 0) table[32] = 32;
  __syncthreads();
  int at = threadIdx.x, n = 0;
  while (table[at] != at && n < 8) at = at < 31 ? at + 1 : 32, ++n;
  steps[threadIdx.x] = n;
}

int main() {
  int *next, *steps, host[32];
  for (int i = 0; i < 32; ++i) host[i] = 0;
  REQUIRE(cudaMalloc(&next, sizeof host));
  REQUIRE(cudaMalloc(&steps, sizeof host));
  REQUIRE(cudaMemcpy(next, host, sizeof host, cudaMemcpyHostToDevice));
  walk<<<1, 32>>>(next, steps);
  REQUIRE(cudaMemcpy(host, steps, sizeof host, cudaMemcpyDeviceToHost));
  return host[0] == 0 && host[31] == 1 && host[24] == 8 ? 0 : 4;
}
