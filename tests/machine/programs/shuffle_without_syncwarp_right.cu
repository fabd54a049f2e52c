// Lane 0 stores the result of a shuffle reduction, __syncwarp orders it before the other lanes read it.
#include "require.cuh"

__global__ void softmax(const float* in, float* out) {
  __shared__ float total[4];
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  float value = in[threadIdx.x], sum = value;
  for (int step = 16; step > 0; step /= 2) sum += __shfl_down_sync(0xffffffffu, sum, step);
  if (lane == 0) total[warp] = sum;
  __syncwarp();
  out[threadIdx.x] = value / total[warp];
}

int main() {
  float *in, *out, host[128];
  for (float& v : host) v = 2.0f;
  REQUIRE(cudaMalloc(&in, sizeof host));
  REQUIRE(cudaMalloc(&out, sizeof host));
  REQUIRE(cudaMemcpy(in, host, sizeof host, cudaMemcpyHostToDevice));
  softmax<<<1, 128>>>(in, out);
  REQUIRE(cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost));
  return host[0] == 1.0f / 32 && host[127] == 1.0f / 32 ? 0 : 4;
}
