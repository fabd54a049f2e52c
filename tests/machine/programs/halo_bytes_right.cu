// Half-precision rows are packed two to a word; each thread writes its own half of the word.
#include "require.cuh"

__global__ void pack(const unsigned short* in, unsigned short* out) {
  __shared__ alignas(4) unsigned short tile[64];
  int t = threadIdx.x;
  tile[t] = in[t];
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
  return host[0] == 64 && host[63] == 1 ? 0 : 4;
}
