// The memory of an mbarrier serves as data and as another mbarrier, each time after it has been invalidated; a warp has one
// for itself; states are used in their own phase and in the next.
#include "mbarrier.cuh"
#include "require.cuh"

__device__ void meet(uint64_t* barrier) {
  uint64_t state = arrive(barrier);
  while (!test(barrier, state)) {
  }
}

__global__ void reuse(int* out) {
  __shared__ union {
    uint64_t barrier;
    int data[2];
  } place;
  __shared__ uint64_t own[2];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  if (lane == 0) init(&own[warp], 32);
  __syncwarp();
  meet(&own[warp]);
  meet(&own[warp]);
  for (int round = 0; round < 2; ++round) {
    if (threadIdx.x == 0) init(&place.barrier, 64);
    __syncthreads();
    meet(&place.barrier);
    meet(&place.barrier);
    __syncthreads();
    if (threadIdx.x == 0) {
      invalidate(&place.barrier);
      place.data[0] = round;
    }
    __syncthreads();
    out[threadIdx.x] = place.data[0];
    __syncthreads();
  }
}

int main() {
  int *out, host[64];
  REQUIRE(cudaMalloc(&out, sizeof host));
  reuse<<<1, 64>>>(out);
  REQUIRE(cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost));
  return host[0] == 1 && host[63] == 1 ? 0 : 4;
}
