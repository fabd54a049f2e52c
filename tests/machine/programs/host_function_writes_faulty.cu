// A host function of one stream fills pinned memory that a copy of another stream reads, and nothing orders the two.
#include "require.cuh"

__global__ void add(int* data) { data[threadIdx.x] += 1; }

void fill(void* memory) {
  for (int i = 0; i < 64; ++i) static_cast<int*>(memory)[i] = i + 1;
}

int main() {
  cudaStream_t one, other;
  REQUIRE(cudaStreamCreateWithFlags(&one, cudaStreamNonBlocking));
  REQUIRE(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
  int *host, *data;
  REQUIRE(cudaMallocHost(&host, 64 * sizeof *host));
  REQUIRE(cudaMalloc(&data, 64 * sizeof *data));
  REQUIRE(cudaLaunchHostFunc(one, fill, host));
  REQUIRE(cudaMemcpyAsync(data, host, 64 * sizeof *host, cudaMemcpyHostToDevice, other));
  add<<<1, 64, 0, other>>>(data);
  REQUIRE(cudaDeviceSynchronize());
  return 0;
}
