// A list of indices is shorter than the grid thinks: the last one was never written, and it is an address.
#include "require.cuh"

__global__ void gather(const int* index, const float* from, float* to) {
  int at = index[threadIdx.x];          // @finding
  to[threadIdx.x] = from[at & 31];      // @other
}

int main() {
  int *index, host[32];
  float *from, *to, values[32];
  for (int i = 0; i < 32; ++i) host[i] = 31 - i, values[i] = float(i);
  REQUIRE(cudaMalloc(&index, sizeof host));
  REQUIRE(cudaMalloc(&from, sizeof values));
  REQUIRE(cudaMalloc(&to, sizeof values));
  REQUIRE(cudaMemcpy(index, host, 31 * sizeof(int), cudaMemcpyHostToDevice));
  REQUIRE(cudaMemcpy(from, values, sizeof values, cudaMemcpyHostToDevice));
  gather<<<1, 32>>>(index, from, to);
  cudaDeviceSynchronize();
  return 0;
}
