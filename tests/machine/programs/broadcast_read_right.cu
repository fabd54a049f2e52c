// All threads of all blocks read the same words, in global, shared and constant memory.
#include "require.cuh"

__constant__ float scale[4] = {1.0f, 2.0f, 3.0f, 4.0f};

__global__ void weighted(const float* in, float* out) {
  __shared__ float shared_row[4];
  if (threadIdx.x < 4) shared_row[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  float sum = 0.0f;
  for (int i = 0; i < 4; ++i) sum += scale[(i + threadIdx.x) % 4] * shared_row[i] * in[i];
  out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

int main() {
  float *in, *out, host[128];
  const float ones[4] = {1, 1, 1, 1};
  REQUIRE(cudaMalloc(&in, sizeof ones));
  REQUIRE(cudaMalloc(&out, sizeof host));
  REQUIRE(cudaMemcpy(in, ones, sizeof ones, cudaMemcpyHostToDevice));
  weighted<<<2, 64>>>(in, out);
  REQUIRE(cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost));
  return host[0] == 10.0f && host[127] == 10.0f ? 0 : 4;
}
