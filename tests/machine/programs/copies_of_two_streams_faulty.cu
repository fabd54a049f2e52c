// Two streams copy to overlapping parts of one array, and no event orders them.
#include "require.cuh"

int main() {
  cudaStream_t one, other;
  REQUIRE(cudaStreamCreateWithFlags(&one, cudaStreamNonBlocking));
  REQUIRE(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
  int *from, *to;
  REQUIRE(cudaMalloc(&from, 256 * sizeof *from));
  REQUIRE(cudaMalloc(&to, 256 * sizeof *to));
  REQUIRE(cudaMemset(from, 0, 256 * sizeof *from));
  REQUIRE(cudaDeviceSynchronize());
  REQUIRE(cudaMemcpyAsync(to, from, 160 * sizeof *to, cudaMemcpyDeviceToDevice, one));
  REQUIRE(cudaMemcpyAsync(to + 128, from + 128, 128 * sizeof *to, cudaMemcpyDeviceToDevice, other));
  REQUIRE(cudaDeviceSynchronize());
  return 0;
}
