// Compiled with --default-stream per-thread: each host thread has a default stream of its own.
// nvcc: --default-stream per-thread
#include "expect.cuh"

#include <thread>

__global__ void set(int* p, int v) { *p = v; }

int main() {
  int *a, *b;
  OK(cudaMalloc(&a, sizeof(int)));
  OK(cudaMalloc(&b, sizeof(int)));
  unsigned long long first_id = 0, second_id = 0;
  auto work = [](int* p, int v, unsigned long long* id) {
    set<<<1, 1>>>(p, v);
    OK(cudaStreamSynchronize(cudaStreamPerThread));
    int got = 0;
    OK(cudaMemcpy(&got, p, sizeof got, cudaMemcpyDeviceToHost));
    EXPECT(got == v);
    OK(cudaStreamGetId(nullptr, id));
  };
  std::thread first(work, a, 3, &first_id), second(work, b, 4, &second_id);
  first.join();
  second.join();
  EXPECT(first_id != second_id);
  return finish();
}
