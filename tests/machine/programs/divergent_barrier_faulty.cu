// Half of each warp meets one barrier and half another, in the two arms of a data-dependent branch.
#include "require.cuh"

__global__ void branch(const int* in, int* out) {
  __shared__ int tile[64];
  int t = threadIdx.x, value = in[t];
  if (value % 2) {
    tile[t] = 3 * value;
    __syncthreads();  // @finding
    out[t] = tile[63 - t] + 1;
  } else {
    tile[t] = value;
    __syncthreads();
    out[t] = tile[63 - t] - 1;
  }
}

int main() {
  int *in, *out, host[64];
  for (int i = 0; i < 64; ++i) host[i] = i;
  REQUIRE(cudaMalloc(&in, sizeof host));
  REQUIRE(cudaMalloc(&out, sizeof host));
  REQUIRE(cudaMemcpy(in, host, sizeof host, cudaMemcpyHostToDevice));
  branch<<<1, 64>>>(in, out);
  cudaDeviceSynchronize();
  return 0;
}
