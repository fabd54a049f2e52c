// Arrays on the stack of another size in each thread, in a function and in what it calls, again and again in a loop.
#include "require.cuh"

__noinline__ __device__ int sum(int n) {
  int* own = static_cast<int*>(alloca(n * sizeof(int)));
  for (int i = 0; i < n; ++i) own[i] = i;
  int total = 0;
  for (int i = 0; i < n; ++i) total += own[n - 1 - i];
  return total;
}

__noinline__ __device__ int sum_twice(int n) {
  char* own = static_cast<char*>(alloca(n + 1));
  for (int i = 0; i <= n; ++i) own[i] = static_cast<char>(i);
  int total = sum(n);
  for (int i = 0; i <= n; ++i) total += own[i];
  return total;
}

__global__ void sum_all(int* out) {
  const int t = threadIdx.x;
  int total = 0;
  for (int k = 0; k < 50; ++k) total += sum((t + k) % 32);
  out[t] = total + sum_twice(t);
}

int main() {
  int *out, host[32];
  REQUIRE(cudaMalloc(&out, sizeof host));
  sum_all<<<1, 32>>>(out);
  REQUIRE(cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost));
  for (int t = 0; t < 32; ++t) {
    int total = t * t;
    for (int k = 0; k < 50; ++k) total += (t + k) % 32 * ((t + k) % 32 - 1) / 2;
    if (host[t] != total) return 9;
  }
  return 0;
}
