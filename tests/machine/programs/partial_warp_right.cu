// A grid-stride loop in blocks of 33 threads: the second warp of each block has one lane, barriers count 33.
#include "require.cuh"

__global__ void stride_sum(const int* in, int* out, int n) {
  __shared__ int tile[33];
  int sum = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) sum += in[i];
  tile[threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.x != 0) return;
  for (int i = 1; i < 33; ++i) sum += tile[i];
  out[blockIdx.x] = sum;
}

int main() {
  constexpr int n = 1001, blocks = 3;
  int *in, *out, host[n];
  for (int& v : host) v = 1;
  REQUIRE(cudaMalloc(&in, sizeof host));
  REQUIRE(cudaMalloc(&out, blocks * sizeof(int)));
  REQUIRE(cudaMemcpy(in, host, sizeof host, cudaMemcpyHostToDevice));
  stride_sum<<<blocks, 33>>>(in, out, n);
  REQUIRE(cudaMemcpy(host, out, blocks * sizeof(int), cudaMemcpyDeviceToHost));
  return host[0] + host[1] + host[2] == n ? 0 : 4;
}
