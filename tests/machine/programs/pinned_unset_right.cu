// A kernel fills half of a buffer. That half is copied to pinned memory, and all of it within the device, where nobody
// looks at the other half.
#include "require.cuh"

__global__ void fill(float* out) {
  if (threadIdx.x < 16) out[threadIdx.x] = 1.0f;
}

int main() {
  float *out, *copy, *host, registered[1024];
  cudaStream_t stream;
  REQUIRE(cudaStreamCreate(&stream));
  REQUIRE(cudaMalloc(&out, 32 * sizeof(float)));
  REQUIRE(cudaMalloc(&copy, 32 * sizeof(float)));
  REQUIRE(cudaMallocHost(&host, 32 * sizeof(float)));
  REQUIRE(cudaHostRegister(registered, sizeof registered, cudaHostRegisterDefault));
  fill<<<1, 32, 0, stream>>>(out);
  REQUIRE(cudaMemcpyAsync(copy, out, 32 * sizeof(float), cudaMemcpyDeviceToDevice, stream));
  REQUIRE(cudaMemcpyAsync(host, copy, 16 * sizeof(float), cudaMemcpyDeviceToHost, stream));
  REQUIRE(cudaMemcpyAsync(registered, copy, 16 * sizeof(float), cudaMemcpyDeviceToHost, stream));
  REQUIRE(cudaStreamSynchronize(stream));
  const bool right = host[15] == 1 && registered[15] == 1;
  REQUIRE(cudaHostUnregister(registered));
  return right ? 0 : 4;
}
