// A per-thread array indexed by data, with room for every bin that the data holds.
#include "require.cuh"

__global__ void histogram(const int* bins, int* out, int n) {
  int counts[5] = {0, 0, 0, 0, 0};
  for (int i = 0; i < n; ++i) counts[bins[i]] += 1;
  for (int i = 0; i < 4; ++i) out[threadIdx.x * 4 + i] = counts[i];
}

int main() {
  const int bins[8] = {0, 1, 2, 3, 3, 2, 4, 0};
  int *in, *out, host[32 * 4];
  REQUIRE(cudaMalloc(&in, sizeof bins));
  REQUIRE(cudaMalloc(&out, sizeof host));
  REQUIRE(cudaMemcpy(in, bins, sizeof bins, cudaMemcpyHostToDevice));
  histogram<<<1, 32>>>(in, out, 8);
  REQUIRE(cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost));
  return host[0] == 2 && host[1] == 1 && host[2] == 2 && host[127] == 2 ? 0 : 4;
}
