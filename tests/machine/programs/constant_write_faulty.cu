// A kernel writes a table in constant memory by its address, and reads it as a constant: the cache may hold the old one.
#include "require.cuh"

__constant__ int table[32];

__global__ void renew(int* out, int* writable) {
  writable[threadIdx.x] = threadIdx.x;  // @finding
  __syncthreads();
  out[threadIdx.x] = table[31 - threadIdx.x];  // @other
}

int main() {
  int* out;
  void* writable;
  REQUIRE(cudaMalloc(&out, 32 * sizeof(int)));
  REQUIRE(cudaGetSymbolAddress(&writable, table));
  renew<<<1, 32>>>(out, static_cast<int*>(writable));
  REQUIRE(cudaDeviceSynchronize());
  return 0;
}
