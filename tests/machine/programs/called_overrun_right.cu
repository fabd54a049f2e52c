// A called function fills its own local array to the end, and its caller's through a pointer.
#include "require.cuh"

__noinline__ __device__ int pick(int* given, int n, int which) {
  int own[4] = {0, 0, 0, 0};
  for (int i = 0; i < n; ++i) own[i] = given[i] * which;
  for (int i = 0; i < 4; ++i) given[i] = own[(i + which) & 3];
  return own[which & 3];
}

__global__ void pick_all(int* out, int n) {
  int values[6];
  for (int i = 0; i < 6; ++i) values[i] = n + i;
  const int t = threadIdx.x;
  out[t] = pick(values, n, t) + pick(values + 1, n, t + 1) + values[t % 6];
}

int main() {
  int* out;
  REQUIRE(cudaMalloc(&out, 32 * sizeof(int)));
  pick_all<<<1, 32>>>(out, 4);
  cudaDeviceSynchronize();
  return 0;
}
