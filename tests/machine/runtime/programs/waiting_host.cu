// A host that waits for the device without a runtime call: on a condition variable, and on a flag in pinned memory.
// Stream work is late here, but it must come.
#include "expect.cuh"

#include <condition_variable>
#include <mutex>

std::mutex mutex;
std::condition_variable arrived;
bool there = false;

void signal(void*) {
  std::lock_guard<std::mutex> guard(mutex);
  there = true;
  arrived.notify_one();
}

__global__ void raise(volatile int* flag) {
  *flag = 1;
  __threadfence_system();
}

int main() {
  cudaStream_t stream;
  OK(cudaStreamCreate(&stream));
  OK(cudaLaunchHostFunc(stream, signal, nullptr));
  {
    std::unique_lock<std::mutex> lock(mutex);
    arrived.wait(lock, [] { return there; });
  }
  volatile int* flag;
  OK(cudaMallocHost(const_cast<int**>(&flag), sizeof(int)));
  *flag = 0;
  raise<<<1, 1, 0, stream>>>(flag);
  while (*flag == 0) {
  }
  OK(cudaStreamSynchronize(stream));
  return finish();
}
