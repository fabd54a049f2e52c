// Each thread gets four ints of the device's heap and one writes a fifth.
#include "require.cuh"

__global__ void fill(int* out, int n) {
  const int t = threadIdx.x;
  int* p = new int[4];
  for (int i = 0; i < n + (t == 7); ++i) p[i] = t + i;  // @finding
  out[t] = p[0];
  delete[] p;
}

int main() {
  int *out, host[32];
  REQUIRE(cudaMalloc(&out, sizeof host));
  fill<<<1, 32>>>(out, 4);
  REQUIRE(cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost));
  return 0;
}
