// The shuffle's mask names the low half of the warp and its source is a lane of the high half.
#include "require.cuh"

__global__ void broadcast(const int* in, int* out) {
  int lane = threadIdx.x, value = in[lane];
  if (lane < 16) value = __shfl_sync(0x0000ffffu, value, 20);  // @finding
  out[lane] = value;
}

int main() {
  int *in, *out, host[32];
  for (int i = 0; i < 32; ++i) host[i] = i;
  REQUIRE(cudaMalloc(&in, sizeof host));
  REQUIRE(cudaMalloc(&out, sizeof host));
  REQUIRE(cudaMemcpy(in, host, sizeof host, cudaMemcpyHostToDevice));
  broadcast<<<1, 32>>>(in, out);
  cudaDeviceSynchronize();
  return 0;
}
