// A flag between blocks whose release and acquire are of block scope.
#include "require.cuh"

#include <cuda/atomic>

__global__ void relay(int* data, int* flag, int* out) {
  cuda::atomic_ref<int, cuda::thread_scope_block> narrow(*flag);
  if (blockIdx.x == 0) {
    *data = 5;
    narrow.store(1, cuda::memory_order_release);  // @other
  } else {
    while (narrow.load(cuda::memory_order_acquire) == 0) {}  // @finding
    *out = *data;
  }
}

int main() {
  int *data, *flag, *out;
  REQUIRE(cudaMalloc(&data, sizeof *data));
  REQUIRE(cudaMalloc(&flag, sizeof *flag));
  REQUIRE(cudaMalloc(&out, sizeof *out));
  REQUIRE(cudaMemset(flag, 0, sizeof *flag));
  relay<<<2, 1>>>(data, flag, out);
  REQUIRE(cudaDeviceSynchronize());
  return 0;
}
