// Lanes of one warp take the same spin lock one after the other.
#include "require.cuh"

__global__ void critical(int* lock, int* count) {
  bool done = false;
  while (!done) {
    if (atomicCAS(lock, 0, 1) == 0) {
      __threadfence();
      *count += 1;
      __threadfence();
      atomicExch(lock, 0);
      done = true;
    }
  }
}

int main() {
  int *lock, *count, value = 0;
  REQUIRE(cudaMalloc(&lock, sizeof(int)));
  REQUIRE(cudaMalloc(&count, sizeof(int)));
  REQUIRE(cudaMemset(lock, 0, sizeof(int)));
  REQUIRE(cudaMemset(count, 0, sizeof(int)));
  critical<<<2, 40>>>(lock, count);
  REQUIRE(cudaMemcpy(&value, count, sizeof value, cudaMemcpyDeviceToHost));
  return value == 80 ? 0 : 4;
}
