// The shuffle's source is one of the lanes that its mask names.
#include "require.cuh"

__global__ void broadcast(const int* in, int* out) {
  int lane = threadIdx.x, value = in[lane];
  if (lane < 16) value = __shfl_sync(0x0000ffffu, value, 15);
  out[lane] = value;
}

int main() {
  int *in, *out, host[32];
  for (int i = 0; i < 32; ++i) host[i] = i;
  REQUIRE(cudaMalloc(&in, sizeof host));
  REQUIRE(cudaMalloc(&out, sizeof host));
  REQUIRE(cudaMemcpy(in, host, sizeof host, cudaMemcpyHostToDevice));
  broadcast<<<1, 32>>>(in, out);
  REQUIRE(cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost));
  return host[0] == 15 && host[16] == 16 ? 0 : 4;
}
