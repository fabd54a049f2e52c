// Threads past the length return before the block barrier and before __syncwarp: exited lanes do not count.
#include "require.cuh"

__global__ void reverse_head(const int* in, int* out, int length) {
  __shared__ int tile[96];
  int t = threadIdx.x;
  if (t >= length) return;
  tile[t] = in[t];
  __syncwarp();
  int neighbour = tile[(t ^ 1) < length ? t ^ 1 : t];
  __syncthreads();
  out[t] = tile[length - 1 - t] + neighbour;
}

int main() {
  constexpr int length = 45;
  int *in, *out, host[96];
  for (int& v : host) v = 1;
  REQUIRE(cudaMalloc(&in, sizeof host));
  REQUIRE(cudaMalloc(&out, sizeof host));
  REQUIRE(cudaMemcpy(in, host, sizeof host, cudaMemcpyHostToDevice));
  reverse_head<<<1, 96>>>(in, out, length);
  REQUIRE(cudaMemcpy(host, out, length * sizeof(int), cudaMemcpyDeviceToHost));
  return host[0] == 2 && host[length - 1] == 2 ? 0 : 4;
}
