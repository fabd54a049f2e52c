// Each lane brings its own mask to one vote: the first half names all lanes, of which the second names only itself.
#include "require.cuh"

__global__ void count(const unsigned* masks, unsigned* out) {
  int lane = threadIdx.x;
  out[lane] = __ballot_sync(masks[lane], lane % 2);  // @finding
}

int main() {
  unsigned *masks, *out, host[32];
  for (int i = 0; i < 32; ++i) host[i] = i < 16 ? 0xffffffffu : 0xffff0000u;
  REQUIRE(cudaMalloc(&masks, sizeof host));
  REQUIRE(cudaMalloc(&out, sizeof host));
  REQUIRE(cudaMemcpy(masks, host, sizeof host, cudaMemcpyHostToDevice));
  count<<<1, 32>>>(masks, out);
  cudaDeviceSynchronize();
  return 0;
}
