// Dynamic shared memory is carved twice: floats in the first phase, bytes at the same place in the second.
#include "require.cuh"

__global__ void phases(const float* in, float* out) {
  extern __shared__ float4 storage[];
  float* values = reinterpret_cast<float*>(storage);
  unsigned char* marks = reinterpret_cast<unsigned char*>(storage);
  int t = threadIdx.x;
  values[t] = in[t];
  __syncthreads();
  float mirrored = values[63 - t];
  __syncthreads();
  marks[t] = mirrored > 31.0f;
  __syncthreads();
  out[t] = mirrored + marks[63 - t];
}

int main() {
  float *in, *out, host[64];
  for (int i = 0; i < 64; ++i) host[i] = float(i);
  REQUIRE(cudaMalloc(&in, sizeof host));
  REQUIRE(cudaMalloc(&out, sizeof host));
  REQUIRE(cudaMemcpy(in, host, sizeof host, cudaMemcpyHostToDevice));
  phases<<<1, 64, 64 * sizeof(float)>>>(in, out);
  REQUIRE(cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost));
  return host[0] == 63.0f && host[63] == 1.0f ? 0 : 4;
}
