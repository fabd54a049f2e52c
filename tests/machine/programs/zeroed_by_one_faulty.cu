// A counter in shared memory is set to zero by thread 0 and counted up by all, with no barrier between. The zero is
// covered by thread 0's own atomic before the other warp comes, which must still be held against it.
#include "require.cuh"

__global__ void count(const int* in, int* out) {
  __shared__ int above;
  if (threadIdx.x == 0) above = 0;  // @other
  if (in[threadIdx.x] > 0) atomicAdd(&above, 1);  // @finding
  __syncthreads();
  if (threadIdx.x == 0) *out = above;
}

int main() {
  int *in, *out, host[64], sum;
  for (int& v : host) v = 1;
  REQUIRE(cudaMalloc(&in, sizeof host));
  REQUIRE(cudaMalloc(&out, sizeof(int)));
  REQUIRE(cudaMemcpy(in, host, sizeof host, cudaMemcpyHostToDevice));
  count<<<1, 64>>>(in, out);
  REQUIRE(cudaMemcpy(&sum, out, sizeof sum, cudaMemcpyDeviceToHost));
  return 0;
}
