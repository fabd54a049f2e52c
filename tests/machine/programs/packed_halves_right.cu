// Words are put together from parts while the rest of them holds nothing yet: bit fields, bytes, 16-bit pairs. What counts
// is what has been put there.
#include <cuda_fp16.h>

#include "require.cuh"

struct Fields {
  unsigned kind : 4, count : 4, rest : 24;
};

__global__ void assemble(const unsigned short* in, unsigned* out) {
  __shared__ Fields fields[32];
  __shared__ __half2 pairs[32];
  __shared__ uchar4 bytes[32];
  int t = threadIdx.x;
  fields[t].kind = t % 16;
  __syncwarp();
  fields[t].count = 3;
  __syncwarp();
  unsigned sum = fields[31 - t].kind + fields[31 - t].count;  // never `rest`

  pairs[t].x = __ushort_as_half(in[t]);
  __syncwarp();
  __half2 pair = __hadd2(pairs[31 - t], pairs[31 - t]);  // the upper half holds nothing
  sum += __half2ushort_rz(__low2half(pair));

  bytes[t].y = (unsigned char)t;
  __syncwarp();
  unsigned word = *reinterpret_cast<unsigned*>(&bytes[t]);
  word = __byte_perm(word, 0, 0x4414);  // byte 1 alone
  if (word >> 8 != unsigned(t)) sum += 1000;
  out[t] = sum;
}

int main() {
  unsigned short *in, host[32];
  unsigned *out, sums[32];
  for (int i = 0; i < 32; ++i) host[i] = 0x3c00;  // one
  REQUIRE(cudaMalloc(&in, sizeof host));
  REQUIRE(cudaMalloc(&out, sizeof sums));
  REQUIRE(cudaMemcpy(in, host, sizeof host, cudaMemcpyHostToDevice));
  assemble<<<1, 32>>>(in, out);
  REQUIRE(cudaMemcpy(sums, out, sizeof sums, cudaMemcpyDeviceToHost));
  return sums[0] == 15 + 3 + 2 && sums[31] == 0 + 3 + 2 ? 0 : 4;
}
