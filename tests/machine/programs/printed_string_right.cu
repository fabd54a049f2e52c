// A kernel prints strings of each kind of memory: all that is printed has been set, and what lies behind has not.
#include <cstdio>

#include "require.cuh"

__device__ const char* kNames[] = {"one", "two"};

__global__ void greet(const char* global, int which) {
  __shared__ char shared[8];
  char local[8];
  local[0] = shared[0] = 'a';
  local[1] = shared[1] = 'b';
  local[2] = shared[2] = 0;
  printf("%s %s %s %s %s\n", local, shared, global, kNames[which], "literal");
}

int main() {
  char* global;
  REQUIRE(cudaMalloc(&global, 16));
  REQUIRE(cudaMemcpy(global, "global", 7, cudaMemcpyHostToDevice));
  greet<<<1, 1>>>(global, 1);
  REQUIRE(cudaDeviceSynchronize());
  return 0;
}
