// Each call of a function writes its own local array before it reads it.
#include "require.cuh"

__noinline__ __device__ int pick(int n, int which, bool first) {
  int own[4];
  if (first || n > 0)
    for (int i = 0; i < n; ++i) own[i] = (i + 1) * which;
  return own[which & 3];
}

__global__ void pick_all(int* out, int n) {
  const int t = threadIdx.x, before = pick(n, t, true);
  out[t] = before + pick(n, t, false);
}

int main() {
  int* out;
  REQUIRE(cudaMalloc(&out, 32 * sizeof(int)));
  pick_all<<<1, 32>>>(out, 4);
  cudaDeviceSynchronize();
  return 0;
}
