// Structs aligned far beyond their members, one to a cache line or two, are copied to the host whole: the rest of each is padding.
#include "require.cuh"

struct alignas(128) Counter {
  unsigned hits;
  float weight;
};

struct alignas(64) Pair {
  double first, second;
};

__global__ void count(Counter* counters, Pair* pairs) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  counters[i].hits = i;
  counters[i].weight = 0.5f;
  pairs[i].first = i;
  pairs[i].second = 1;
}

__global__ void count_one(Counter* counters, int which) {
  if (threadIdx.x == 0) counters[which].hits = 1, counters[which].weight = 2;
}

int main() {
  Counter *counters, *one, host[64], single;
  Pair *pairs, found[64];
  REQUIRE(cudaMalloc(&counters, sizeof host));
  REQUIRE(cudaMalloc(&pairs, sizeof found));
  REQUIRE(cudaMalloc(&one, sizeof single));
  count<<<2, 32>>>(counters, pairs);
  count_one<<<1, 32>>>(one, 0);
  REQUIRE(cudaMemcpy(host, counters, sizeof host, cudaMemcpyDeviceToHost));
  REQUIRE(cudaMemcpy(found, pairs, sizeof found, cudaMemcpyDeviceToHost));
  REQUIRE(cudaMemcpy(&single, one, sizeof single, cudaMemcpyDeviceToHost));
  return host[63].hits == 63 && found[5].first == 5 && single.hits == 1 ? 0 : 4;
}
