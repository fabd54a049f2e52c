// Memory that streams allocate, use and free in order: on one stream, with events between two, with the host waiting, the
// pool using it again; and memory of cudaMalloc, whose cudaFree waits.
#include "require.cuh"

__global__ void fill(int* data) { data[threadIdx.x] = threadIdx.x; }
__global__ void sum(const int* data, int* out) {
  int value = data[threadIdx.x];
  for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(0xffffffffu, value, step);
  if (threadIdx.x == 0) *out = value;
}

int main() {
  cudaStream_t one, other;
  REQUIRE(cudaStreamCreateWithFlags(&one, cudaStreamNonBlocking));
  REQUIRE(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
  cudaEvent_t made, used;
  REQUIRE(cudaEventCreate(&made));
  REQUIRE(cudaEventCreate(&used));
  int *data, *plain, *out, host = 0;
  REQUIRE(cudaMalloc(&out, sizeof(int)));
  for (int round = 0; round < 3; ++round) {
    REQUIRE(cudaMallocAsync(&data, 32 * sizeof(int), one));
    REQUIRE(cudaEventRecord(made, one));
    REQUIRE(cudaStreamWaitEvent(other, made));
    fill<<<1, 32, 0, other>>>(data);
    sum<<<1, 32, 0, other>>>(data, out);
    REQUIRE(cudaEventRecord(used, other));
    REQUIRE(cudaStreamWaitEvent(one, used));
    REQUIRE(cudaFreeAsync(data, one));
  }
  REQUIRE(cudaMallocAsync(&data, 32 * sizeof(int), one));
  fill<<<1, 32, 0, one>>>(data);
  REQUIRE(cudaStreamSynchronize(one));
  REQUIRE(cudaFree(data));
  REQUIRE(cudaMalloc(&plain, 32 * sizeof(int)));
  fill<<<1, 32, 0, one>>>(plain);
  REQUIRE(cudaFree(plain));
  REQUIRE(cudaStreamSynchronize(other));
  REQUIRE(cudaMemcpy(&host, out, sizeof host, cudaMemcpyDeviceToHost));
  return host == 496 ? 0 : 4;
}
