// A list of up to 16 expert scores is filled with 17: the last one lands in the array of their numbers, which nvcc lays behind it.
#include "require.cuh"

__global__ void route(const float* score, int count, float* best, int* number) {
  float kept[16];
  int id[16];
  for (int i = 0; i < 16; ++i) kept[i] = 0, id[i] = i;
  for (int i = 0; i < count; ++i) kept[i] = score[i * 5 % 32];  // @finding
  const float* last = kept + 15;
  for (int i = 0; i < 16; ++i) best[i] = *(last - i * 3 % 16), number[i] = id[(i * 3 + count) % 16];
}

int main() {
  float scores[32], *in, *best;
  int* number;
  for (int i = 0; i < 32; ++i) scores[i] = static_cast<float>(i);
  REQUIRE(cudaMalloc(&in, sizeof scores));
  REQUIRE(cudaMalloc(&best, 64));
  REQUIRE(cudaMalloc(&number, 64));
  REQUIRE(cudaMemcpy(in, scores, sizeof scores, cudaMemcpyHostToDevice));
  route<<<1, 1>>>(in, 17, best, number);
  cudaDeviceSynchronize();
  return 0;
}
