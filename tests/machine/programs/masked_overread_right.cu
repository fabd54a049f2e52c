// The last vector is loaded whole though its tail was never written, and a mask discards what does not count.
#include "require.cuh"

__global__ void tail_sum(const uint2* in, unsigned* out, int length) {
  int lane = threadIdx.x;
  unsigned sum = 0;
  uint2 v = in[lane];
  sum = 2 * lane < length ? v.x : 0u;
  sum += 2 * lane + 1 < length ? v.y : 0u;
  out[lane] = sum;
}

int main() {
  constexpr int length = 61;
  unsigned host[64], *in, *out;
  for (unsigned& v : host) v = 1u;
  REQUIRE(cudaMalloc(&in, sizeof host));
  REQUIRE(cudaMalloc(&out, 32 * sizeof(unsigned)));
  REQUIRE(cudaMemcpy(in, host, length * sizeof(unsigned), cudaMemcpyHostToDevice));
  tail_sum<<<1, 32>>>(reinterpret_cast<const uint2*>(in), out, length);
  REQUIRE(cudaMemcpy(host, out, 32 * sizeof(unsigned), cudaMemcpyDeviceToHost));
  return host[0] == 2u && host[30] == 1u && host[31] == 0u ? 0 : 4;
}
