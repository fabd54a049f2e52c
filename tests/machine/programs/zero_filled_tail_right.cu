// cp.async with a source size below its full width fills the rest with zeros: the tail is written, and no byte
// past the source is read, although the address of the last vector passes the end of the buffer.
#include "require.cuh"

#include <cuda_pipeline.h>

__global__ void tail_sum(const float4* in, float* out, int bytes) {
  __shared__ float4 tile[32];
  int lane = threadIdx.x, left = max(0, min(16, bytes - lane * 16));
  __pipeline_memcpy_async(&tile[lane], &in[left > 0 ? lane : 0], 16, 16 - left);
  __pipeline_commit();
  __pipeline_wait_prior(0);
  __syncthreads();
  float4 v = tile[31 - lane];
  out[lane] = v.x + v.y + v.z + v.w;
}

int main() {
  constexpr int length = 101;
  float *in, *out, host[length];
  for (float& v : host) v = 1.0f;
  REQUIRE(cudaMalloc(&in, sizeof host));
  REQUIRE(cudaMalloc(&out, 32 * sizeof(float)));
  REQUIRE(cudaMemcpy(in, host, sizeof host, cudaMemcpyHostToDevice));
  tail_sum<<<1, 32>>>(reinterpret_cast<const float4*>(in), out, int(sizeof host));
  REQUIRE(cudaMemcpy(host, out, 32 * sizeof(float), cudaMemcpyDeviceToHost));
  return host[31] == 4.0f && host[6] == 1.0f && host[5] == 0.0f ? 0 : 4;
}
