// A table of chains on the device's heap: blocks insert with compare-and-swap, a later kernel walks and frees the chains.
#include "require.cuh"

struct Entry {
  int key;
  Entry* next;
};
using Word = unsigned long long;

__global__ void insert(Entry** table, int keys, int places) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= keys) return;
  Entry* e = static_cast<Entry*>(malloc(sizeof(Entry)));
  e->key = i * 7;
  auto* place = reinterpret_cast<Word*>(table + e->key % places);
  for (Word seen = atomicAdd(place, 0);;) {
    e->next = reinterpret_cast<Entry*>(seen);
    __threadfence();
    const Word found = atomicCAS(place, seen, reinterpret_cast<Word>(e));
    if (found == seen) break;
    seen = found;
  }
}

__global__ void sum_and_free(Entry** table, int* sums) {
  int sum = 0;
  for (Entry* e = table[threadIdx.x]; e != nullptr;) {
    Entry* next = e->next;
    sum += e->key;
    free(e);
    e = next;
  }
  sums[threadIdx.x] = sum;
}

int main() {
  constexpr int places = 37, keys = 500;
  Entry** table;
  int *sums, got[places], wanted[places] = {};
  REQUIRE(cudaMalloc(&table, places * sizeof *table));
  REQUIRE(cudaMemset(table, 0, places * sizeof *table));
  REQUIRE(cudaMalloc(&sums, sizeof got));
  insert<<<8, 64>>>(table, keys, places);
  sum_and_free<<<1, places>>>(table, sums);
  REQUIRE(cudaMemcpy(got, sums, sizeof got, cudaMemcpyDeviceToHost));
  for (int i = 0; i < keys; ++i) wanted[i * 7 % places] += i * 7;
  for (int k = 0; k < places; ++k)
    if (got[k] != wanted[k]) return 9;
  return 0;
}
