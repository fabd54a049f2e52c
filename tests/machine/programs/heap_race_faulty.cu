// Two warps write one object of the device's heap without a barrier.
#include "require.cuh"

__global__ void mark(int* out) {
  __shared__ int* object;
  if (threadIdx.x == 0) object = new int(0);
  __syncthreads();
  if (threadIdx.x % 32 == 0) *object = threadIdx.x;  // @finding
  __syncthreads();
  out[threadIdx.x] = *object;
  __syncthreads();
  if (threadIdx.x == 0) delete object;
}

int main() {
  int *out, host[64];
  REQUIRE(cudaMalloc(&out, sizeof host));
  mark<<<1, 64>>>(out);
  REQUIRE(cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost));
  return 0;
}
