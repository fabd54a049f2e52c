// A cp.async double buffer that waits and does not meet: each thread's wait covers only its own copies, and it
// reads those of another.
#include "require.cuh"

#include <cuda_pipeline.h>

constexpr int tile = 64, tiles = 6;

__global__ void moving_sum(const float4* in, float* out) {
  __shared__ float4 buffer[2][tile];
  int t = threadIdx.x;
  float sum = 0.0f;
  __pipeline_memcpy_async(&buffer[0][t], &in[t], sizeof(float4));  // @other
  __pipeline_commit();
  for (int i = 0; i < tiles; ++i) {
    if (i + 1 < tiles) __pipeline_memcpy_async(&buffer[(i + 1) % 2][t], &in[(i + 1) * tile + t], sizeof(float4));
    __pipeline_commit();
    __pipeline_wait_prior(1);
    float4 v = buffer[i % 2][(t + 33) % tile];  // @finding
    sum += v.x + v.y + v.z + v.w;
    __syncthreads();
  }
  out[t] = sum;
}

int main() {
  constexpr int n = tile * tiles * 4;
  float *in, *out, host[n];
  for (float& v : host) v = 1.0f;
  REQUIRE(cudaMalloc(&in, sizeof host));
  REQUIRE(cudaMalloc(&out, tile * sizeof(float)));
  REQUIRE(cudaMemcpy(in, host, sizeof host, cudaMemcpyHostToDevice));
  moving_sum<<<1, tile>>>(reinterpret_cast<const float4*>(in), out);
  cudaDeviceSynchronize();
  return 0;
}
