// A lock between blocks with a fence after taking and before releasing it.
#include "require.cuh"

__device__ int lock = 0;

__global__ void append(int* count, int* list) {
  if (threadIdx.x == 0) {
    while (atomicCAS(&lock, 0, 1) != 0) {}
    __threadfence();
    list[*count] = blockIdx.x;
    *count += 1;
    __threadfence();
    atomicExch(&lock, 0);
  }
}

int main() {
  int *count, *list, host[16], n;
  REQUIRE(cudaMalloc(&count, sizeof(int)));
  REQUIRE(cudaMalloc(&list, sizeof host));
  REQUIRE(cudaMemset(count, 0, sizeof(int)));
  append<<<16, 32>>>(count, list);
  REQUIRE(cudaMemcpy(host, list, sizeof host, cudaMemcpyDeviceToHost));
  REQUIRE(cudaMemcpy(&n, count, sizeof n, cudaMemcpyDeviceToHost));
  unsigned seen = 0;
  for (int i = 0; i < 16; ++i) seen |= 1u << host[i];
  return n == 16 && seen == 0xffffu ? 0 : 4;
}
