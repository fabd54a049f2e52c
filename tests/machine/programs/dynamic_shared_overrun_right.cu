// The launch asks for as much dynamic shared memory as the kernel uses.
#include "require.cuh"

__global__ void rotate_rows(const float* in, float* out) {
  extern __shared__ float rows[];
  rows[threadIdx.y * 32 + threadIdx.x] = in[threadIdx.y * 32 + threadIdx.x];
  __syncthreads();
  out[threadIdx.y * 32 + threadIdx.x] = rows[(threadIdx.y + 1) % 4 * 32 + threadIdx.x];
}

int main() {
  float *in, *out, host[128];
  for (int i = 0; i < 128; ++i) host[i] = float(i / 32);
  REQUIRE(cudaMalloc(&in, sizeof host));
  REQUIRE(cudaMalloc(&out, sizeof host));
  REQUIRE(cudaMemcpy(in, host, sizeof host, cudaMemcpyHostToDevice));
  rotate_rows<<<1, dim3(32, 4), 4 * 32 * sizeof(float)>>>(in, out);
  REQUIRE(cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost));
  return host[0] == 1.0f && host[127] == 0.0f ? 0 : 4;
}
