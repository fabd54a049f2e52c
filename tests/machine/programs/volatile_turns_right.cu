// What volatile data is right for: an update under a lock that all take, a flag that two blocks set in turns, a flag that
// two warps set in turns, and one that several set to the same value.
#include "require.cuh"

__device__ int lock = 0;

__device__ void add_locked(volatile int* count) {
  while (atomicCAS(&lock, 0, 1) != 0) {}
  __threadfence();
  *count = *count + 1;
  __threadfence();
  atomicExch(&lock, 0);
}

__device__ void take_turns(volatile int* turn, int me, int* data) {
  for (int round = 0; round < 3; ++round) {
    while (*turn != me) {}
    __threadfence();
    *data += 1;
    __threadfence();
    *turn = 1 - me;
  }
}

__global__ void play(volatile int* memory, int* data, volatile int* seen) {
  __shared__ volatile int turn;
  __shared__ int shared_data;
  if (threadIdx.x == 0) turn = 0, shared_data = 0;
  __syncthreads();
  if (threadIdx.x % 32 == 0) {
    *seen = 1;
    take_turns(&turn, threadIdx.x / 32, &shared_data);
  }
  if (threadIdx.x == 0) {
    add_locked(memory);
    take_turns(memory + 1, blockIdx.x, data);
  }
  __syncthreads();
  if (threadIdx.x == 0) atomicAdd(data + 1, shared_data);
}

int main() {
  int *memory, host[4];
  REQUIRE(cudaMalloc(&memory, sizeof host + 4));
  REQUIRE(cudaMemset(memory, 0, sizeof host + 4));
  play<<<2, 64>>>(memory, memory + 2, memory + 4);
  REQUIRE(cudaMemcpy(host, memory, sizeof host, cudaMemcpyDeviceToHost));
  return host[0] == 2 && host[2] == 6 && host[3] == 12 ? 0 : 4;
}
