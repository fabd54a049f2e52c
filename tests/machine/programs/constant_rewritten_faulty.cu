// A kernel on one stream writes a table in constant memory by its address while one on another stream reads it.
#include "require.cuh"

__constant__ int table[32];

__global__ void renew(int* writable) {
  writable[threadIdx.x] = threadIdx.x;  // @other
}

__global__ void look_up(int* out) {
  out[threadIdx.x] = table[threadIdx.x];  // @finding
}

int main() {
  int* out;
  void* writable;
  cudaStream_t one, other;
  REQUIRE(cudaStreamCreate(&one));
  REQUIRE(cudaStreamCreate(&other));
  REQUIRE(cudaMalloc(&out, 32 * sizeof(int)));
  REQUIRE(cudaGetSymbolAddress(&writable, table));
  renew<<<1, 32, 0, one>>>(static_cast<int*>(writable));
  look_up<<<1, 32, 0, other>>>(out);
  REQUIRE(cudaDeviceSynchronize());
  return 0;
}
