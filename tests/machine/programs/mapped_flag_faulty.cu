// A kernel leaves a result in mapped memory and says so by a flag, with no fence between them: the host may see the flag
// first.
#include "require.cuh"

__global__ void answer(int* data, volatile int* ready, volatile int* done) {
  data[threadIdx.x] = 42;  // @finding
  __syncthreads();
  if (threadIdx.x != 0) return;
  *ready = 1;
  while (*done == 0) {
  }
}

int main() {
  int *data, *ready, *done;
  REQUIRE(cudaHostAlloc(&data, 64 * sizeof(int), cudaHostAllocMapped));
  REQUIRE(cudaHostAlloc(&ready, sizeof(int), cudaHostAllocMapped));
  REQUIRE(cudaHostAlloc(&done, sizeof(int), cudaHostAllocMapped));
  *data = *ready = *done = 0;
  answer<<<1, 64>>>(data, ready, done);
  while (*static_cast<volatile int*>(ready) == 0) {
  }
  const int seen = data[7];
  *static_cast<volatile int*>(done) = 1;
  REQUIRE(cudaDeviceSynchronize());
  std::printf("%d\n", seen);
  return 0;
}
