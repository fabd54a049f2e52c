// An index that was never written is read and dropped: threads past the length take their own.
#include "require.cuh"

__global__ void gather(const int* index, const float* from, float* to, int length) {
  int at = index[threadIdx.x];
  at = threadIdx.x < length ? at : threadIdx.x;
  to[threadIdx.x] = from[at & 31];
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
  gather<<<1, 32>>>(index, from, to, 31);
  REQUIRE(cudaMemcpy(values, to, sizeof values, cudaMemcpyDeviceToHost));
  return values[0] == 31.0f && values[31] == 31.0f ? 0 : 4;
}
