// Prints what was written, the written half of a word, and nothing of what was not.
#include "require.cuh"

struct Pair {
  short head, tail;
};

__global__ void show(const float* values, const Pair* pairs) {
  const float value = values[threadIdx.x];
  if (threadIdx.x < 3) printf("%d %*d %s: %f\n", threadIdx.x, 5, 7, "of 3", value);
  const unsigned word = reinterpret_cast<const unsigned*>(pairs)[threadIdx.x];
  printf("%u %c\n", word & 0xffffu, 'a' + static_cast<int>(word & 7u));
}

__global__ void fill(Pair* pairs) { pairs[threadIdx.x].head = static_cast<short>(threadIdx.x); }

int main() {
  float* values;
  Pair* pairs;
  REQUIRE(cudaMalloc(&values, 4 * sizeof *values));
  REQUIRE(cudaMemset(values, 0, 3 * sizeof *values));
  REQUIRE(cudaMalloc(&pairs, 4 * sizeof *pairs));
  fill<<<1, 4>>>(pairs);
  show<<<1, 4>>>(values, pairs);
  REQUIRE(cudaDeviceSynchronize());
  return 0;
}
