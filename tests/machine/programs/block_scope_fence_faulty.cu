// The ticket's fences reach the own block only (__threadfence_block), and the partial is read by another.
// Its right twin is last_block_ticket_right.
#include "require.cuh"

__device__ unsigned tickets = 0;

__global__ void total(const float* in, float* partial, float* out) {
  __shared__ bool last;
  if (threadIdx.x == 0) {
    partial[blockIdx.x] = in[blockIdx.x];  // @other
    __threadfence_block();
    last = atomicAdd(&tickets, 1u) == gridDim.x - 1;
    __threadfence_block();
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
