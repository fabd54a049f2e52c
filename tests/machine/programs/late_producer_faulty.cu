// The consumer runs on a second stream that nothing orders after the producer's.
#include "require.cuh"

__global__ void produce(int* data) {
  data[threadIdx.x] = 7;  // @other
}

__global__ void consume(const int* data, int* out) {
  out[threadIdx.x] = data[threadIdx.x];  // @finding
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
  consume<<<1, 64, 0, second>>>(data, out);
  REQUIRE(cudaDeviceSynchronize());
  REQUIRE(cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost));
  return 0;
}
