// One thread gives back what the others of its block may still read: the barrier before the free is missing.
#include "require.cuh"

__global__ void sum(int* out) {
  __shared__ int* all;
  if (threadIdx.x == 0) {
    all = static_cast<int*>(malloc(blockDim.x * sizeof(int)));
    for (int i = 0; i < blockDim.x; ++i) all[i] = i;
  }
  __syncthreads();
  out[threadIdx.x] = all[blockDim.x - 1 - threadIdx.x];  // @other
  if (threadIdx.x == 100) free(all);                       // @finding
}

int main() {
  int *out, host[128];
  REQUIRE(cudaMalloc(&out, sizeof host));
  sum<<<1, 128>>>(out);
  REQUIRE(cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost));
  return 0;
}
