// A kernel writes a table in constant memory by its address; the next one on the stream reads it, and the first reads
// another table.
#include "require.cuh"

__constant__ int table[32], offsets[32];

__global__ void renew(int* writable) { writable[threadIdx.x] = threadIdx.x + offsets[threadIdx.x]; }

__global__ void look_up(int* out) { out[threadIdx.x] = table[threadIdx.x]; }

int main() {
  int *out, host[32];
  void* writable;
  REQUIRE(cudaMalloc(&out, sizeof host));
  REQUIRE(cudaGetSymbolAddress(&writable, table));
  renew<<<1, 32>>>(static_cast<int*>(writable));
  look_up<<<1, 32>>>(out);
  REQUIRE(cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost));
  return host[31] == 31 ? 0 : 4;
}
