// A kernel frees an address inside of what it has got.
#include "require.cuh"

__global__ void shift(int* out) {
  int* p = static_cast<int*>(malloc(64));
  for (int i = 0; i < 16; ++i) p[i] = i;
  while (*p < 3) ++p;
  out[threadIdx.x] = *p;
  free(p);  // @finding
}

int main() {
  int* out;
  REQUIRE(cudaMalloc(&out, 32 * sizeof(int)));
  shift<<<1, 32>>>(out);
  REQUIRE(cudaDeviceSynchronize());
  return 0;
}
