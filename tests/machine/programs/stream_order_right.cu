// Work on the legacy default stream is ordered with blocking streams, a host wait orders all that follows it,
// and a callback-free fork and join goes through events.
#include "require.cuh"

__global__ void add(int* data, int value) { data[threadIdx.x] += value; }

int main() {
  cudaStream_t left, right;
  cudaEvent_t fork, join;
  REQUIRE(cudaStreamCreate(&left));
  REQUIRE(cudaStreamCreate(&right));
  REQUIRE(cudaEventCreate(&fork));
  REQUIRE(cudaEventCreate(&join));
  int *data, host[64];
  REQUIRE(cudaMalloc(&data, sizeof host));
  REQUIRE(cudaMemset(data, 0, sizeof host));
  add<<<1, 64, 0, left>>>(data, 1);
  add<<<1, 64>>>(data, 2);
  add<<<1, 64, 0, right>>>(data, 4);
  REQUIRE(cudaEventRecord(fork, right));
  REQUIRE(cudaStreamWaitEvent(left, fork, 0));
  add<<<1, 64, 0, left>>>(data, 8);
  REQUIRE(cudaEventRecord(join, left));
  REQUIRE(cudaEventSynchronize(join));
  add<<<1, 64, 0, right>>>(data, 16);
  REQUIRE(cudaStreamSynchronize(right));
  REQUIRE(cudaMemcpy(host, data, sizeof host, cudaMemcpyDeviceToHost));
  return host[0] == 31 && host[63] == 31 ? 0 : 4;
}
