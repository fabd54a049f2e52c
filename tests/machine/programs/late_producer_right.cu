// The consumer's stream waits for an event that the producer's stream recorded.
#include "require.cuh"

__global__ void produce(int* data) {
  data[threadIdx.x] = 7;
}

__global__ void consume(const int* data, int* out) {
  out[threadIdx.x] = data[threadIdx.x];
}

int main() {
  cudaStream_t first, second;
  REQUIRE(cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking));
  REQUIRE(cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking));
  int *data, *out, host[64];
  REQUIRE(cudaMalloc(&data, sizeof host));
  REQUIRE(cudaMalloc(&out, sizeof host));
  REQUIRE(cudaMemset(data, 0, sizeof host));
  REQUIRE(cudaDeviceSynchronize());
  produce<<<1, 64, 0, first>>>(data);
  cudaEvent_t produced;
  REQUIRE(cudaEventCreateWithFlags(&produced, cudaEventDisableTiming));
  REQUIRE(cudaEventRecord(produced, first));
  REQUIRE(cudaStreamWaitEvent(second, produced, 0));
  consume<<<1, 64, 0, second>>>(data, out);
  REQUIRE(cudaDeviceSynchronize());
  REQUIRE(cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost));
  return host[0] == 7 && host[63] == 7 ? 0 : 4;
}
