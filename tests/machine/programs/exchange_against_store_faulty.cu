// One block exchanges a word and forgets what was there, another one stores to it: which value stays is chance.
#include "require.cuh"

__global__ void choose(volatile unsigned* word) {
  if (blockIdx.x == 0) atomicExch(const_cast<unsigned*>(word), 1u);  // @other
  else *word = 2;  // @finding
}

int main() {
  unsigned* word;
  REQUIRE(cudaMalloc(&word, sizeof *word));
  REQUIRE(cudaMemset(word, 0, sizeof *word));
  choose<<<2, 1>>>(word);
  REQUIRE(cudaDeviceSynchronize());
  return 0;
}
