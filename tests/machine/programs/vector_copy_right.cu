// Bytes that four threads wrote are read as one vector after a barrier, and written back as one vector that four
// threads read.
#include "require.cuh"

__global__ void regroup(const unsigned char* in, unsigned* out) {
  __shared__ alignas(16) unsigned char bytes[512];
  int t = threadIdx.x;
  for (int i = t; i < 512; i += 128) bytes[i] = in[i];
  __syncthreads();
  if (t < 32) {
    uint4 v = reinterpret_cast<uint4*>(bytes)[t];
    v.x += 1;
    reinterpret_cast<uint4*>(bytes)[t] = v;
  }
  __syncthreads();
  out[t] = bytes[4 * t] + bytes[4 * t + 1] + bytes[4 * t + 2] + bytes[4 * t + 3];
}

int main() {
  unsigned char *in, host[512];
  unsigned *out, sums[128];
  for (unsigned char& v : host) v = 1;
  REQUIRE(cudaMalloc(&in, sizeof host));
  REQUIRE(cudaMalloc(&out, sizeof sums));
  REQUIRE(cudaMemcpy(in, host, sizeof host, cudaMemcpyHostToDevice));
  regroup<<<1, 128>>>(in, out);
  REQUIRE(cudaMemcpy(sums, out, sizeof sums, cudaMemcpyDeviceToHost));
  return sums[0] == 5 && sums[1] == 4 && sums[124] == 5 ? 0 : 4;
}
