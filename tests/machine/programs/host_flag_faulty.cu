// A kernel waits for an answer in mapped memory that the host would write after it has waited for the kernel.
#include "require.cuh"

__global__ void ask(volatile int* question, volatile int* answer, int* out) {
  *question = 20;
  __threadfence_system();
  while (*answer == 0) {}  // @finding
  *out = *answer;
}

int main() {
  int *shared, *out;
  REQUIRE(cudaHostAlloc(&shared, 2 * sizeof(int), cudaHostAllocMapped));
  REQUIRE(cudaMalloc(&out, sizeof(int)));
  volatile int* flags = shared;
  flags[0] = flags[1] = 0;
  ask<<<1, 1>>>(shared, shared + 1, out);
  cudaDeviceSynchronize();
  flags[1] = flags[0] + 1;
  return 0;
}
