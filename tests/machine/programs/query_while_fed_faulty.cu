// The host looks after a kernel once, and then waits for it without giving it what it polls for.
#include "require.cuh"

__global__ void ask(volatile const int* answer, int* out) {
  while (*answer == 0) {  // @finding
  }
  *out = *answer;
}

int main() {
  int *answer, *out;
  REQUIRE(cudaHostAlloc(&answer, sizeof(int), cudaHostAllocMapped));
  REQUIRE(cudaMalloc(&out, sizeof(int)));
  *answer = 0;
  ask<<<1, 1>>>(answer, out);
  if (cudaStreamQuery(0) != cudaErrorNotReady) return 4;
  cudaDeviceSynchronize();
  return 0;
}
