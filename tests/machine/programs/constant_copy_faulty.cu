// A table in constant memory is replaced on one stream while a kernel of another may read it.
#include "require.cuh"

__constant__ int table[32];

__global__ void look_up(int* out) {
  out[threadIdx.x] = table[threadIdx.x];  // @finding
}

int main() {
  int *out, *next;
  cudaStream_t copying, computing;
  REQUIRE(cudaStreamCreate(&copying));
  REQUIRE(cudaStreamCreate(&computing));
  REQUIRE(cudaMalloc(&out, 32 * sizeof(int)));
  REQUIRE(cudaMallocHost(&next, 32 * sizeof(int)));
  for (int i = 0; i < 32; ++i) next[i] = i;
  look_up<<<1, 32, 0, computing>>>(out);
  REQUIRE(cudaMemcpyToSymbolAsync(table, next, 32 * sizeof(int), 0, cudaMemcpyHostToDevice, copying));
  REQUIRE(cudaDeviceSynchronize());
  return 0;
}
