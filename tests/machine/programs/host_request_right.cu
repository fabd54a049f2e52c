// A kernel serves requests that the host leaves in mapped memory: it acquires the flag at system scope before it reads the
// request, and releases its answer.
#include <cuda/atomic>

#include "require.cuh"

__global__ void serve(int* flag, const int* request, int* answer, int rounds) {
  cuda::atomic_ref<int, cuda::thread_scope_system> turn(*flag);
  for (int round = 0; round < rounds; ++round) {
    while (turn.load(cuda::memory_order_acquire) != 2 * round + 1) {
    }
    *answer = *request + 1;
    turn.store(2 * round + 2, cuda::memory_order_release);
  }
}

int main() {
  int* shared;
  REQUIRE(cudaHostAlloc(&shared, 3 * sizeof(int), cudaHostAllocMapped));
  for (int i = 0; i < 3; ++i) shared[i] = 0;
  serve<<<1, 1>>>(shared, shared + 1, shared + 2, 4);
  bool right = true;
  for (int round = 0; round < 4; ++round) {
    shared[1] = 10 * round;
    __atomic_store_n(shared, 2 * round + 1, __ATOMIC_RELEASE);
    while (__atomic_load_n(shared, __ATOMIC_ACQUIRE) != 2 * round + 2) {
    }
    right = right && shared[2] == 10 * round + 1;
  }
  REQUIRE(cudaDeviceSynchronize());
  return right ? 0 : 4;
}
