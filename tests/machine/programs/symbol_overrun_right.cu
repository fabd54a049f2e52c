// A look-up table in a __device__ symbol, indexed by a code that is masked to its four bits.
#include "require.cuh"

__device__ float magnitudes[16] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6, 0, -0.5f, -1, -1.5f, -2, -3, -4, -6};

__global__ void decode(const int* codes, float* out) {
  out[threadIdx.x] = magnitudes[codes[threadIdx.x] & 15];
}

int main() {
  int *codes, host[32];
  float *out;
  for (int i = 0; i < 32; ++i) host[i] = i;
  REQUIRE(cudaMalloc(&codes, sizeof host));
  REQUIRE(cudaMalloc(&out, 32 * sizeof(float)));
  REQUIRE(cudaMemcpy(codes, host, sizeof host, cudaMemcpyHostToDevice));
  decode<<<1, 32>>>(codes, out);
  float values[32];
  REQUIRE(cudaMemcpy(values, out, sizeof values, cudaMemcpyDeviceToHost));
  return values[7] == 6.0f && values[23] == 6.0f && values[31] == -6.0f ? 0 : 4;
}
