// The consumer spins on a volatile flag; weak accesses order nothing, whatever the compiler keeps.
#include "require.cuh"

#include <cuda/atomic>

__global__ void relay(int* data, unsigned* flag, int* out) {
  if (blockIdx.x == 0) {
    data[threadIdx.x] = 5;  // @other
    __syncthreads();
    if (threadIdx.x == 0) *static_cast<volatile unsigned*>(flag) = 1;
  } else {
    if (threadIdx.x == 0) {
      while (*static_cast<volatile unsigned*>(flag) == 0) {}
    }
    __syncthreads();
    out[threadIdx.x] = data[threadIdx.x];  // @finding
  }
}

int main() {
  int *data, *out, host[32];
  unsigned* flag;
  REQUIRE(cudaMalloc(&data, sizeof host));
  REQUIRE(cudaMalloc(&out, sizeof host));
  REQUIRE(cudaMalloc(&flag, sizeof(unsigned)));
  REQUIRE(cudaMemset(flag, 0, sizeof(unsigned)));
  relay<<<2, 32>>>(data, flag, out);
  REQUIRE(cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost));
  return 0;
}
