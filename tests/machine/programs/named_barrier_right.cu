// Two producer warps arrive at a named barrier without waiting, the consumer warp waits there for all three.
#include "require.cuh"

__global__ void hand_over(const float* in, float* out) {
  __shared__ float tile[64];
  int t = threadIdx.x;
  if (t < 64) {
    tile[t] = in[t];
    asm volatile("bar.arrive 1, 96;" ::: "memory");
  } else {
    asm volatile("bar.sync 1, 96;" ::: "memory");
    out[t - 64] = tile[t - 64] + tile[t - 32];
  }
}

int main() {
  float *in, *out, host[64];
  for (float& v : host) v = 1.0f;
  REQUIRE(cudaMalloc(&in, sizeof host));
  REQUIRE(cudaMalloc(&out, 32 * sizeof(float)));
  REQUIRE(cudaMemcpy(in, host, sizeof host, cudaMemcpyHostToDevice));
  hand_over<<<1, 96>>>(in, out);
  REQUIRE(cudaMemcpy(host, out, 32 * sizeof(float), cudaMemcpyDeviceToHost));
  return host[0] == 2.0f && host[31] == 2.0f ? 0 : 4;
}
