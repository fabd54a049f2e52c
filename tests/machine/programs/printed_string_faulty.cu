// A kernel prints a string of which nobody has set the third character.
#include <cstdio>

#include "require.cuh"

__global__ void greet(int* out) {
  char text[8];
  text[0] = 'a';
  text[1] = 'b';
  printf("%s\n", text);  // @finding
  *out = 1;
}

int main() {
  int* out;
  REQUIRE(cudaMalloc(&out, sizeof *out));
  greet<<<1, 1>>>(out);
  cudaDeviceSynchronize();
  return 0;
}
