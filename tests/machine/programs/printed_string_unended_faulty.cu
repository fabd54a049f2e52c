// A kernel prints characters in global memory that no zero ends.
#include <cstdio>

#include "require.cuh"

__global__ void greet(const char* text) {
  printf("%s\n", text);  // @finding
}

int main() {
  char* text;
  REQUIRE(cudaMalloc(&text, 16));
  REQUIRE(cudaMemset(text, 'a', 16));
  greet<<<1, 1>>>(text);
  cudaDeviceSynchronize();
  return 0;
}
