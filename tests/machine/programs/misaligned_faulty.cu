// A row is read as float4 from a pointer that is only aligned to four bytes.
#include "require.cuh"

__global__ void row_sum(const float* row, float* out) {
  float4 v = reinterpret_cast<const float4*>(row + 1)[threadIdx.x];  // @finding
  out[threadIdx.x] = v.x + v.y + v.z + v.w;
}

int main() {
  float *in, *out, host[256];
  for (int i = 0; i < 256; ++i) host[i] = 1.0f;
  REQUIRE(cudaMalloc(&in, sizeof host));
  REQUIRE(cudaMalloc(&out, 32 * sizeof(float)));
  REQUIRE(cudaMemcpy(in, host, sizeof host, cudaMemcpyHostToDevice));
  row_sum<<<1, 32>>>(in, out);
  cudaDeviceSynchronize();
  return 0;
}
