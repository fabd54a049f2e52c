// A table of functions in device memory of which the host has filled all but the last place.
#include "require.cuh"

using Number = int (*)(int);
__device__ int plus_one(int x) { return x + 1; }
__device__ Number first = plus_one;

__global__ void call_all(int* out, const Number* table) {
  out[threadIdx.x] = table[threadIdx.x](threadIdx.x);  // @finding
}

int main() {
  int* out;
  Number *table, host[32];
  REQUIRE(cudaMalloc(&out, 32 * sizeof(int)));
  REQUIRE(cudaMalloc(&table, sizeof host));
  REQUIRE(cudaMemcpyFromSymbol(host, first, sizeof *host));
  for (Number& f : host) f = host[0];
  REQUIRE(cudaMemcpy(table, host, sizeof host - sizeof *host, cudaMemcpyHostToDevice));
  call_all<<<1, 32>>>(out, table);
  cudaDeviceSynchronize();
  return 0;
}
