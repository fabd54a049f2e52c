// Sums of the warps that take part, of four of which the compiler loads the sum before it knows whether it counts; and a block
// reduction over fewer values than threads, which exchanges what the other lanes do not have.
#include <cub/block/block_reduce.cuh>

#include "require.cuh"

__global__ void total(const float* in, float* out, int length) {
  __shared__ float sums[8];
  int thread = threadIdx.x;
  float value = thread < length ? in[thread] : 0.0f;
  for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(0xffffffffu, value, step);
  if (thread % 32 == 0) sums[thread / 32] = value;
  __syncthreads();
  if (thread == 0) {
#pragma unroll
    for (int warp = 1; warp < 8; ++warp)
      if (warp * 32 < length) value += sums[warp];
    out[0] = value;
  }
}

__global__ void reduce(const float* in, float* out, int length) {
  using Reduce = cub::BlockReduce<float, 128>;
  __shared__ typename Reduce::TempStorage storage;
  float value;
  if (threadIdx.x < length) value = in[threadIdx.x];
  float sum = Reduce(storage).Sum(value, length);
  if (threadIdx.x == 0) out[1] = sum;
}

int main() {
  constexpr int length = 77;
  float *in, *out, host[length];
  for (float& v : host) v = 1.0f;
  REQUIRE(cudaMalloc(&in, sizeof host));
  REQUIRE(cudaMalloc(&out, 2 * sizeof(float)));
  REQUIRE(cudaMemcpy(in, host, sizeof host, cudaMemcpyHostToDevice));
  total<<<1, 96>>>(in, out, length);
  reduce<<<1, 128>>>(in, out, length);
  REQUIRE(cudaMemcpy(host, out, 2 * sizeof(float), cudaMemcpyDeviceToHost));
  return host[0] == float(length) && host[1] == float(length) ? 0 : 4;
}
