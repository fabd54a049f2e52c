// Half-precision rows are packed two to a word; one thread writes its neighbour's half as well.
#include "require.cuh"

__global__ void pack(const unsigned short* in, unsigned short* out) {
  __shared__ alignas(4) unsigned short tile[64];
  int t = threadIdx.x;
  if (t % 2) reinterpret_cast<unsigned*>(tile)[t / 2] = in[t] << 16;  // @finding
  else tile[t] = in[t];  // @other
  __syncthreads();
  out[t] = tile[63 - t];
}

int main() {
  unsigned short *in, *out, host[64];
  for (int i = 0; i < 64; ++i) host[i] = static_cast<unsigned short>(i + 1);
  REQUIRE(cudaMalloc(&in, sizeof host));
  REQUIRE(cudaMalloc(&out, sizeof host));
  REQUIRE(cudaMemcpy(in, host, sizeof host, cudaMemcpyHostToDevice));
  pack<<<1, 64>>>(in, out);
  REQUIRE(cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost));
  return 0;
}
