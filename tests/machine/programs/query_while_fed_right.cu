// A kernel works through a queue in mapped memory, which the host fills while cudaStreamQuery says that it is not done.
#include "require.cuh"

__global__ void sum(volatile const int* filled, volatile const int* queue, int items, int* out) {
  int total = 0;
  for (int i = 0; i < items; ++i) {
    while (*filled <= i) {
    }
    __threadfence_system();
    total += queue[i];
  }
  *out = total;
}

int main() {
  constexpr int items = 4;
  int *shared, *out;
  REQUIRE(cudaHostAlloc(&shared, (1 + items) * sizeof(int), cudaHostAllocMapped));
  REQUIRE(cudaMalloc(&out, sizeof(int)));
  for (int i = 0; i <= items; ++i) shared[i] = 0;
  cudaStream_t stream;
  cudaEvent_t end;
  REQUIRE(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  REQUIRE(cudaEventCreate(&end));
  sum<<<1, 1, 0, stream>>>(shared, shared + 1, items, out);
  REQUIRE(cudaEventRecord(end, stream));
  int filled = 0;
  while (filled < items) {
    if (cudaStreamQuery(stream) != cudaErrorNotReady || cudaEventQuery(end) != cudaErrorNotReady) return 4;
    shared[1 + filled] = 10 * filled;
    __atomic_store_n(shared, ++filled, __ATOMIC_RELEASE);
  }
  REQUIRE(cudaStreamSynchronize(stream));
  int total = 0;
  REQUIRE(cudaMemcpy(&total, out, sizeof total, cudaMemcpyDeviceToHost));
  return total == 60 ? 0 : 5;
}
