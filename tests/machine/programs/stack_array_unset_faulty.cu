// Each thread asks for an array on the stack and leaves out its last element; the sum decides.
#include "require.cuh"

__noinline__ __device__ int sum(int n, int set) {
  int* own = static_cast<int*>(alloca(n * sizeof(int)));
  for (int i = 0; i < set; ++i) own[i] = i;
  int total = 0;
  for (int i = 0; i < n; ++i) total += own[n - 1 - i];  // @finding
  return total;
}

__global__ void sum_all(int* out, int n) {
  const int t = threadIdx.x;
  out[t] = sum(t + 2, t + 2) + (sum(t + 1, t) > n ? 1 : 2);
}

int main() {
  int *out, host[32];
  REQUIRE(cudaMalloc(&out, sizeof host));
  sum_all<<<1, 32>>>(out, 9);
  REQUIRE(cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost));
  return 0;
}
