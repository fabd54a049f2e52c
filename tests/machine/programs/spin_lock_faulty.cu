// A lock between blocks whose release is a plain exchange: no fence orders what it protects.
#include "require.cuh"

__device__ int lock = 0;

__global__ void append(int* count, int* list) {
  if (threadIdx.x == 0) {
    while (atomicCAS(&lock, 0, 1) != 0) {}
    list[*count] = blockIdx.x;  // @finding
    *count += 1;
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
  return 0;
}
