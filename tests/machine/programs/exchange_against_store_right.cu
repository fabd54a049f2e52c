// A lock taken by exchange and given back by a volatile store, and a flag that one block sets by exchange and the other
// takes back when it has seen it.
#include "require.cuh"

__global__ void take_turns(unsigned* lock, unsigned* sum, volatile unsigned* flag) {
  while (atomicExch(lock, 1u) != 0) {}
  __threadfence();
  *sum += 1;
  __threadfence();
  *static_cast<volatile unsigned*>(lock) = 0;
  for (int round = 0; round < 3; ++round) {
    if (blockIdx.x == 0) {
      while (*flag != 0) {}
      atomicExch(const_cast<unsigned*>(flag), 1u);
    } else if (blockIdx.x == 1) {
      while (*flag == 0) {}
      *flag = 0;
    }
  }
}

int main() {
  unsigned *memory, host[3];
  REQUIRE(cudaMalloc(&memory, sizeof host));
  REQUIRE(cudaMemset(memory, 0, sizeof host));
  take_turns<<<4, 1>>>(memory, memory + 1, memory + 2);
  REQUIRE(cudaMemcpy(host, memory, sizeof host, cudaMemcpyDeviceToHost));
  return host[1] == 4 ? 0 : 4;
}
