// Both arms of a branch leave their barrier to the code after it.
#include "require.cuh"

__global__ void branch(const int* in, int* out) {
  __shared__ int tile[64];
  int t = threadIdx.x, value = in[t];
  if (value % 2) {
    tile[t] = 3 * value;
  } else {
    tile[t] = value;
  }
  __syncthreads();
  out[t] = tile[63 - t];
}

int main() {
  int *in, *out, host[64];
  for (int i = 0; i < 64; ++i) host[i] = i;
  REQUIRE(cudaMalloc(&in, sizeof host));
  REQUIRE(cudaMalloc(&out, sizeof host));
  REQUIRE(cudaMemcpy(in, host, sizeof host, cudaMemcpyHostToDevice));
  branch<<<1, 64>>>(in, out);
  REQUIRE(cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost));
  return host[0] == 189 && host[1] == 62 ? 0 : 4;
}
