// The kernel reads the request before it has acquired the flag that says that it is there.
#include <cuda/atomic>

#include "require.cuh"

__global__ void serve(int* flag, const int* request, int* answer) {
  const int early = *request;  // @finding
  cuda::atomic_ref<int, cuda::thread_scope_system> turn(*flag);
  while (turn.load(cuda::memory_order_acquire) != 1) {
  }
  *answer = early + 1;
}

int main() {
  int *shared, *answer;
  REQUIRE(cudaHostAlloc(&shared, 2 * sizeof(int), cudaHostAllocMapped));
  REQUIRE(cudaMalloc(&answer, sizeof *answer));
  volatile int* flag = shared;
  volatile int* request = shared + 1;
  *flag = *request = 0;
  serve<<<1, 1>>>(shared, shared + 1, answer);
  *request = 10;
  *flag = 1;
  REQUIRE(cudaDeviceSynchronize());
  return 0;
}
