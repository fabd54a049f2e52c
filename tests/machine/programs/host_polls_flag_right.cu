// The host waits for a flag in pinned memory that the kernel sets when its results are visible to the whole system.
#include "require.cuh"

__global__ void square(int* out, volatile int* ready) {
  out[threadIdx.x] = threadIdx.x * threadIdx.x;
  __threadfence_system();
  __syncthreads();
  if (threadIdx.x == 0) *ready = 1;
}

int main() {
  int *result, *ready;
  REQUIRE(cudaMallocHost(&result, 64 * sizeof(int)));
  REQUIRE(cudaMallocHost(&ready, sizeof(int)));
  for (int i = 0; i < 64; ++i) result[i] = 0;
  *ready = 0;
  square<<<1, 64>>>(result, ready);
  while (*static_cast<volatile int*>(ready) == 0) {
  }
  int sum = 0;
  for (int i = 0; i < 64; ++i) sum += result[i];
  std::printf("%d\n", sum);
  REQUIRE(cudaDeviceSynchronize());
  return 0;
}
