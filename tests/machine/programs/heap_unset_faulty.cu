// Memory of the device's heap holds nothing until it is written.
#include "require.cuh"

__global__ void count(int* out, int n) {
  const int t = threadIdx.x;
  int* seen = new int[8];
  for (int i = 1; i < 8; ++i) seen[i] = 0;
  for (int i = 0; i < n; ++i) ++seen[(t + i) & 7];  // @finding
  out[t] = seen[t & 7] > 1 ? 1 : 0;
  delete[] seen;
}

int main() {
  int *out, host[32];
  REQUIRE(cudaMalloc(&out, sizeof host));
  count<<<1, 32>>>(out, 11);
  REQUIRE(cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost));
  return 0;
}
