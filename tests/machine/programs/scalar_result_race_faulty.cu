// Every thread adds its part to one shared sum without an atomic.
#include "require.cuh"

__global__ void block_sum(const int* in, int* out) {
  __shared__ int sum;
  if (threadIdx.x == 0) sum = 0;
  __syncthreads();
  sum += in[threadIdx.x];  // @finding
  __syncthreads();
  if (threadIdx.x == 0) *out = sum;
}

int main() {
  int *in, *out, host[128], sum;
  for (int& v : host) v = 2;
  REQUIRE(cudaMalloc(&in, sizeof host));
  REQUIRE(cudaMalloc(&out, sizeof(int)));
  REQUIRE(cudaMemcpy(in, host, sizeof host, cudaMemcpyHostToDevice));
  block_sum<<<1, 128>>>(in, out);
  REQUIRE(cudaMemcpy(&sum, out, sizeof sum, cudaMemcpyDeviceToHost));
  return 0;
}
