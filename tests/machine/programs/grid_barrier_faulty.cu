// A hand-written grid barrier waits for one block more than the grid has.
#include "require.cuh"

__device__ unsigned arrived = 0;

__device__ void grid_barrier(unsigned blocks) {
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    atomicAdd(&arrived, 1u);
    while (atomicAdd(&arrived, 0u) < blocks) {}
    __threadfence();
  }
  __syncthreads();
}

__global__ void rotate(const int* in, int* between, int* out, int n) {
  int i = blockIdx.x * 64 + threadIdx.x;
  between[i] = in[i] + 1;
  grid_barrier(gridDim.x + 1);  // @finding
  out[i] = between[(i + 64) % n];
}

int main() {
  constexpr int n = 4 * 64;
  int *in, *between, *out, host[n];
  for (int i = 0; i < n; ++i) host[i] = i;
  REQUIRE(cudaMalloc(&in, sizeof host));
  REQUIRE(cudaMalloc(&between, sizeof host));
  REQUIRE(cudaMalloc(&out, sizeof host));
  REQUIRE(cudaMemcpy(in, host, sizeof host, cudaMemcpyHostToDevice));
  rotate<<<4, 64>>>(in, between, out, n);
  cudaDeviceSynchronize();
  return 0;
}
