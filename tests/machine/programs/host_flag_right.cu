// A kernel asks the host by mapped memory and waits for the answer, while a thread of the program is still at work.
#include <chrono>
#include <thread>

#include "require.cuh"

__global__ void ask(volatile int* question, volatile int* answer, int* out) {
  *question = 20;
  __threadfence_system();
  while (*answer == 0) {}
  *out = *answer;
}

int main() {
  int *shared, *out, host;
  REQUIRE(cudaHostAlloc(&shared, 2 * sizeof(int), cudaHostAllocMapped));
  REQUIRE(cudaMalloc(&out, sizeof(int)));
  volatile int* flags = shared;
  flags[0] = flags[1] = 0;
  std::thread answering([flags] {
    while (flags[0] == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    flags[1] = flags[0] + 1;
  });
  ask<<<1, 1>>>(shared, shared + 1, out);
  REQUIRE(cudaDeviceSynchronize());
  answering.join();
  REQUIRE(cudaMemcpy(&host, out, sizeof host, cudaMemcpyDeviceToHost));
  return host == 21 ? 0 : 4;
}
