// A tile is filled up to the length, and one row more counts in the scores.
#include "require.cuh"

__global__ void scores(const unsigned* keys, const unsigned* query, float* out, int length) {
  __shared__ unsigned tile[8][4];
  int lane = threadIdx.x, row = lane / 4, column = lane % 4;
  if (row < length) tile[row][column] = keys[lane];
  __syncwarp();
  unsigned key = tile[row][column];  // @finding
  float d[4] = {};
  asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
               : "r"(query[lane]), "r"(query[32 + lane]), "r"(key));
  float best = -1e30f;
  for (int i = 0; i < 4; ++i)
    if (2 * column + i % 2 <= length) best = fmaxf(best, d[i]);
  for (int step = 2; step > 0; step /= 2) best = fmaxf(best, __shfl_xor_sync(0xffffffffu, best, step));
  out[lane] = best;
}

int main() {
  unsigned *keys, *query;
  float *out, host[32];
  REQUIRE(cudaMalloc(&keys, 128));
  REQUIRE(cudaMalloc(&query, 256));
  REQUIRE(cudaMalloc(&out, sizeof host));
  REQUIRE(cudaMemset(keys, 0, 128));
  REQUIRE(cudaMemset(query, 0, 256));
  scores<<<1, 32>>>(keys, query, out, 5);
  REQUIRE(cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost));
  return 0;
}
