// Producer and consumer warps meet at a named barrier that counts one warp less than there are: the third warp
// meets nobody.
#include "require.cuh"

__global__ void hand_over(const float* in, float* out) {
  __shared__ float tile[64];
  int t = threadIdx.x;
  if (t < 64) {
    tile[t] = in[t];
    asm volatile("bar.arrive 1, 64;" ::: "memory");
  } else {
    asm volatile("bar.sync 1, 96;" ::: "memory");  // @finding
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
  cudaDeviceSynchronize();
  return 0;
}
