// A kernel fills half of a buffer, and all of it is copied to pinned memory, as it would be to pageable memory.
#include "require.cuh"

__global__ void fill(float* out) {
  if (threadIdx.x < 16) out[threadIdx.x] = 1.0f;
}

int main() {
  float *out, *host;
  cudaStream_t stream;
  REQUIRE(cudaStreamCreate(&stream));
  REQUIRE(cudaMalloc(&out, 32 * sizeof(float)));
  REQUIRE(cudaMallocHost(&host, 32 * sizeof(float)));
  fill<<<1, 32, 0, stream>>>(out);
  REQUIRE(cudaMemcpyAsync(host, out, 32 * sizeof(float), cudaMemcpyDeviceToHost, stream));
  REQUIRE(cudaStreamSynchronize(stream));
  return host[0] == 1 ? 0 : 4;
}
