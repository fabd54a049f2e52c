// The host adds to managed memory after the kernel that reads it is done.
#include "require.cuh"

__global__ void copy(const int* in, int* out) {
  out[threadIdx.x] = in[threadIdx.x];
}

int main() {
  int *shared, *out, host[64];
  REQUIRE(cudaMallocManaged(&shared, sizeof host));
  REQUIRE(cudaMalloc(&out, sizeof host));
  for (int i = 0; i < 64; ++i) shared[i] = i;
  copy<<<1, 64>>>(shared, out);
  REQUIRE(cudaDeviceSynchronize());
  for (int i = 0; i < 64; ++i) shared[i] += 1;
  REQUIRE(cudaDeviceSynchronize());
  REQUIRE(cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost));
  return host[0] == 0 && host[63] == 63 ? 0 : 4;
}
