// A loop with a barrier inside runs as often as the warp's row is long; the warps of short rows go on to the next barrier.
#include "require.cuh"

__global__ void rows(const int* lengths, int* out) {
  __shared__ int seen[4];
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32, sum = 0;
  int length = lengths[warp];
#pragma unroll 1
  for (int i = 0; i < length; ++i) {  // @other
    if (lane == 0) atomicAdd(&seen[warp], i);
    __syncthreads();  // @finding
    sum += i;
  }
  out[threadIdx.x] = sum;
  __syncthreads();
  if (lane == 0) out[threadIdx.x] = seen[warp];
}

int main() {
  constexpr int threads = 128;
  int *in, *out, host[threads];
  for (int i = 0; i < threads; ++i) host[i] = i + 1;
  REQUIRE(cudaMalloc(&in, sizeof host));
  REQUIRE(cudaMalloc(&out, sizeof host));
  REQUIRE(cudaMemcpy(in, host, sizeof host, cudaMemcpyHostToDevice));
  rows<<<1, threads>>>(in + 1, out);
  cudaDeviceSynchronize();
  return 0;
}
