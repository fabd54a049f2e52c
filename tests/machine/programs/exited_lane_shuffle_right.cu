// Masks may name lanes that have exited, as the Programming Guide has it ("all non-exited threads named in mask"): votes and
// matches count those that are there, and what a shuffle gets from one that is not is dropped.
#include "require.cuh"

__global__ void reduce(const float* in, float* out, int n) {
  if (threadIdx.x >= n) return;
  float sum = in[threadIdx.x];
  for (int step = 16; step > 0; step /= 2) {
    const float other = __shfl_down_sync(0xffffffffu, sum, step);
    if (threadIdx.x + step < n) sum += other;
  }
  const unsigned there = __ballot_sync(0xffffffffu, 1);
  const unsigned same = __match_any_sync(0xffffffffu, threadIdx.x % 2);
  if (!__all_sync(0xffffffffu, threadIdx.x < n)) sum = -1;
  __syncwarp();
  if (threadIdx.x == 0) out[0] = sum, out[1] = __popc(there), out[2] = __popc(same);
}

int main() {
  float *in, *out, host[3];
  REQUIRE(cudaMalloc(&in, 20 * sizeof *in));
  REQUIRE(cudaMalloc(&out, sizeof host));
  REQUIRE(cudaMemset(in, 0, 20 * sizeof *in));
  reduce<<<1, 32>>>(in, out, 20);
  REQUIRE(cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost));
  return host[0] == 0 && host[1] == 20 && host[2] == 10 ? 0 : 4;
}
