// Volatile data behind fences of device scope; flags that are polled, which need no order though a fence of block scope has
// come before them; and volatile data inside a block.
#include "require.cuh"

__global__ void relay(volatile int* data, int* flag, volatile int* steps, int* out) {
  if (blockIdx.x == 0) {
    if (threadIdx.x == 0) {
      *data = 5;
      __threadfence();
      atomicExch(flag, 1);
      data[1] = 6;
      __threadfence_block();
      steps[0] = 1;
      __threadfence_block();
      steps[1] = 1;
    } else if (threadIdx.x == 32) {
      while (steps[0] == 0) {}
      __threadfence_block();
      out[1] = data[1];
    }
  } else if (threadIdx.x == 0) {
    while (atomicAdd(flag, 0) == 0) {}
    __threadfence();
    out[0] = *data;
    while (steps[1] == 0) {}
    while (steps[0] == 0) {}
  }
}

int main() {
  int *memory, host[2];
  REQUIRE(cudaMalloc(&memory, 16 * sizeof *memory));
  REQUIRE(cudaMemset(memory, 0, 16 * sizeof *memory));
  relay<<<2, 64>>>(memory, memory + 2, memory + 4, memory + 6);
  REQUIRE(cudaMemcpy(host, memory + 6, sizeof host, cudaMemcpyDeviceToHost));
  return host[0] == 5 && host[1] == 6 ? 0 : 4;
}
