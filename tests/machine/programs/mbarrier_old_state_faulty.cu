// A thread asks an mbarrier for the state of a phase before the last one, which the mbarrier knows no more of.
#include "mbarrier.cuh"
#include "require.cuh"

__global__ void ask(int* out) {
  __shared__ uint64_t barrier;
  init(&barrier, 1);
  uint64_t state = arrive(&barrier);
  arrive(&barrier);
  *out = test(&barrier, state);  // @finding
}

int main() {
  int* out;
  REQUIRE(cudaMalloc(&out, sizeof *out));
  ask<<<1, 1>>>(out);
  cudaDeviceSynchronize();
  return 0;
}
