// The host reads a pinned result that a kernel may still be writing.
#include "require.cuh"

__global__ void fill(int* out) {
  out[threadIdx.x] = 3;  // @finding
}

int main() {
  int* pinned;
  REQUIRE(cudaMallocHost(&pinned, 64 * sizeof(int)));
  for (int i = 0; i < 64; ++i) pinned[i] = 0;
  fill<<<1, 64>>>(pinned);
  int sum = 0;
  for (int i = 0; i < 64; ++i) sum += pinned[i];
  REQUIRE(cudaDeviceSynchronize());
  std::printf("%d\n", sum);
  return 0;
}
