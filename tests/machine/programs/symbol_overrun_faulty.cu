// A look-up table in a __device__ symbol has 16 entries; a five-bit code reads past it.
#include "require.cuh"

__device__ float magnitudes[16] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6, 0, -0.5f, -1, -1.5f, -2, -3, -4, -6};

__global__ void decode(const int* codes, float* out) {
  out[threadIdx.x] = magnitudes[codes[threadIdx.x] & 31];  // @finding
}

int main() {
  int *codes, host[32];
  float *out;
  for (int i = 0; i < 32; ++i) host[i] = i;
  REQUIRE(cudaMalloc(&codes, sizeof host));
  REQUIRE(cudaMalloc(&out, 32 * sizeof(float)));
  REQUIRE(cudaMemcpy(codes, host, sizeof host, cudaMemcpyHostToDevice));
  decode<<<1, 32>>>(codes, out);
  cudaDeviceSynchronize();
  return 0;
}
