// Each thread asks for an array of its own size on the stack; one reads past its end.
#include "require.cuh"

__noinline__ __device__ int sum(int n, int shift) {
  int* own = static_cast<int*>(alloca(n * sizeof(int)));
  for (int i = 0; i < n; ++i) own[i] = i;
  int total = 0;
  for (int i = 0; i < n; ++i) total += own[i + shift];  // @finding
  return total;
}

__global__ void sum_all(int* out) { out[threadIdx.x] = sum(threadIdx.x, threadIdx.x == 5); }

int main() {
  int *out, host[32];
  REQUIRE(cudaMalloc(&out, sizeof host));
  sum_all<<<1, 32>>>(out);
  REQUIRE(cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost));
  return 0;
}
