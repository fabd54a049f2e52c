// Every thread writes and fences, a barrier follows, then one thread publishes for all of them.
#include "require.cuh"

__global__ void hand_over(int* data, unsigned* flag, int* out) {
  if (blockIdx.x == 0) {
    data[threadIdx.x] = threadIdx.x;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) atomicExch(flag, 1u);
  } else {
    if (threadIdx.x == 0) {
      while (atomicAdd(flag, 0u) == 0) {}
      __threadfence();
    }
    __syncthreads();
    out[threadIdx.x] = data[63 - threadIdx.x];
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
  return host[0] == 63 && host[63] == 0 ? 0 : 4;
}
