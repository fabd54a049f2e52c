// Every thread that sees a negative value sets the same flag to 1. Same-value writes are a race by the letter
// and harmless in practice: a warning.
#include "require.cuh"

__global__ void any_negative(const int* in, int* out) {
  __shared__ int flag;
  if (threadIdx.x == 0) flag = 0;
  __syncthreads();
  if (in[threadIdx.x] < 0) flag = 1;  // @finding
  __syncthreads();
  out[threadIdx.x] = flag;
}

int main() {
  int *in, *out;
  REQUIRE(cudaMalloc(&in, 128 * sizeof(int)));
  REQUIRE(cudaMalloc(&out, 128 * sizeof(int)));
  REQUIRE(cudaMemset(in, 0xff, 128 * sizeof(int)));
  any_negative<<<1, 128>>>(in, out);
  cudaDeviceSynchronize();
  return 0;
}
