// The common ticket idiom with the writer's fence only: the last block goes on after its atomic and a barrier.
// Not race-free in the PTX model, and everywhere: a warning, never an error.
#include "require.cuh"

__device__ unsigned tickets = 0;

__global__ void total(const float* in, float* partial, float* out) {
  __shared__ bool last;
  if (threadIdx.x == 0) {
    partial[blockIdx.x] = in[blockIdx.x];  // @other
    __threadfence();
    last = atomicAdd(&tickets, 1u) == gridDim.x - 1;
  }
  __syncthreads();
  if (!last) return;
  float sum = threadIdx.x < gridDim.x ? partial[threadIdx.x] : 0.0f;  // @finding
  for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
  if (threadIdx.x == 0) *out = sum;
}

int main() {
  constexpr int blocks = 20;
  float *in, *partial, *out;
  REQUIRE(cudaMalloc(&in, blocks * sizeof(float)));
  REQUIRE(cudaMalloc(&partial, blocks * sizeof(float)));
  REQUIRE(cudaMalloc(&out, sizeof(float)));
  REQUIRE(cudaMemset(in, 0, blocks * sizeof(float)));
  total<<<blocks, 32>>>(in, partial, out);
  cudaDeviceSynchronize();
  return 0;
}
