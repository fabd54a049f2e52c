// Every thread writes and one publishes, with a fence of its own but no barrier before it: the fence covers the writes
// of its own thread only.
#include "require.cuh"

__global__ void hand_over(int* data, unsigned* flag, int* out) {
  if (blockIdx.x == 0) {
    data[threadIdx.x] = threadIdx.x;  // @other
    if (threadIdx.x == 0) {
      __threadfence();
      atomicExch(flag, 1u);
    }
  } else {
    if (threadIdx.x == 0) {
      while (atomicAdd(flag, 0u) == 0) {}
      __threadfence();
    }
    __syncthreads();
    out[threadIdx.x] = data[63 - threadIdx.x];  // @finding
  }
}

int main() {
  int *data, *out, host[64];
  unsigned* flag;
  REQUIRE(cudaMalloc(&data, sizeof host));
  REQUIRE(cudaMalloc(&out, sizeof host));
  REQUIRE(cudaMalloc(&flag, sizeof(unsigned)));
  REQUIRE(cudaMemset(data, 0, sizeof host));
  REQUIRE(cudaMemset(flag, 0, sizeof(unsigned)));
  hand_over<<<2, 64>>>(data, flag, out);
  REQUIRE(cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost));
  return 0;
}
