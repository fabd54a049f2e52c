// The host adds to managed memory while a kernel that reads it may still run.
#include "require.cuh"

__global__ void copy(const int* in, int* out) {
  out[threadIdx.x] = in[threadIdx.x];  // @finding
}

int main() {
  int *shared, *out, host[64];
  REQUIRE(cudaMallocManaged(&shared, sizeof host));
  REQUIRE(cudaMalloc(&out, sizeof host));
  for (int i = 0; i < 64; ++i) shared[i] = i;
  copy<<<1, 64>>>(shared, out);
  for (int i = 0; i < 64; ++i) shared[i] += 1;
  REQUIRE(cudaDeviceSynchronize());
  REQUIRE(cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost));
  return 0;
}
