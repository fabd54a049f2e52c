// The host reads a pinned result after it has waited for the stream.
#include "require.cuh"

__global__ void fill(int* out) {
  out[threadIdx.x] = 3;
}

int main() {
  int* pinned;
  REQUIRE(cudaMallocHost(&pinned, 64 * sizeof(int)));
  for (int i = 0; i < 64; ++i) pinned[i] = 0;
  fill<<<1, 64>>>(pinned);
  REQUIRE(cudaDeviceSynchronize());
  int sum = 0;
  for (int i = 0; i < 64; ++i) sum += pinned[i];
  REQUIRE(cudaDeviceSynchronize());
  return sum == 3 * 64 ? 0 : 4;
}
