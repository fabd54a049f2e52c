// Half of the warps have no row and pass the block barrier by: they store their nothing and end.
#include "require.cuh"

__global__ void reverse(const int* in, int* out, int rows) {
  __shared__ int tile[128];
  int t = threadIdx.x, value = 0;
  if (t < rows) {  // @other
    tile[t] = in[t];
    __syncthreads();  // @finding
    value = tile[rows - 1 - t];
  }
  out[t] = value;
}

int main() {
  constexpr int threads = 128;
  int *in, *out, host[threads];
  for (int i = 0; i < threads; ++i) host[i] = i % 4 + 1;
  REQUIRE(cudaMalloc(&in, sizeof host));
  REQUIRE(cudaMalloc(&out, sizeof host));
  REQUIRE(cudaMemcpy(in, host, sizeof host, cudaMemcpyHostToDevice));
  reverse<<<1, threads>>>(in, out, 64);
  cudaDeviceSynchronize();
  return 0;
}
