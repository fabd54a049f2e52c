// The halves of a warp take different branches, and one names only itself in its shuffle while the other waits for all.
#include "require.cuh"

__global__ void swap_neighbours(const int* in, int* out) {
  int lane = threadIdx.x, value = in[lane];
  if (lane < 16) {
    value = __shfl_xor_sync(0xffffffffu, value, 1);  // @finding
  } else {
    value = __shfl_xor_sync(0xffff0000u, value, 1);  // @other
  }
  out[lane] = value;
}

int main() {
  int *in, *out, host[32];
  for (int i = 0; i < 32; ++i) host[i] = i;
  REQUIRE(cudaMalloc(&in, sizeof host));
  REQUIRE(cudaMalloc(&out, sizeof host));
  REQUIRE(cudaMemcpy(in, host, sizeof host, cudaMemcpyHostToDevice));
  swap_neighbours<<<1, 32>>>(in, out);
  cudaDeviceSynchronize();
  return 0;
}
