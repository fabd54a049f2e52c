// The barrier itself has a predicate that only half of the warps fulfil.
#include "require.cuh"

__global__ void store(const int* in, int* out) {
  int t = threadIdx.x;
  asm volatile("{\n.reg .pred p;\nsetp.lt.s32 p, %0, 64;\n@p bar.sync 0;\n}" ::"r"(t) : "memory");  // @finding
  out[t] = in[t];
}

int main() {
  constexpr int threads = 128;
  int *in, *out, host[threads];
  for (int i = 0; i < threads; ++i) host[i] = i % 4 + 1;
  REQUIRE(cudaMalloc(&in, sizeof host));
  REQUIRE(cudaMalloc(&out, sizeof host));
  REQUIRE(cudaMemcpy(in, host, sizeof host, cudaMemcpyHostToDevice));
  store<<<1, threads>>>(in, out);
  cudaDeviceSynchronize();
  return 0;
}
