// Compare-and-swap loops on elements of arrays, members of structs and variables at an offset, whose address the compiler
// computes once for the first guess and once for the swap.
#include "require.cuh"

struct Cell {
  int pad;
  unsigned count;
  double sum;
};

__device__ unsigned table[8];

__device__ void add(double* at, double value) {
  auto* word = reinterpret_cast<unsigned long long*>(at);
  unsigned long long old = *word, seen;
  do {
    seen = old;
    old = atomicCAS(word, seen, __double_as_longlong(value + __longlong_as_double(seen)));
  } while (old != seen);
}

__device__ void add_three(unsigned* at) {
  unsigned old = *at, seen;
  do {
    seen = old;
    old = atomicCAS(at, seen, seen + 3);
  } while (old != seen);
}

__global__ void gather(Cell* cells, unsigned* counts, double* sums, int n, long long m) {
  __shared__ unsigned in_block[8];
  if (threadIdx.x < 8) in_block[threadIdx.x] = 0;
  __syncthreads();
  add_three(&counts[3]);
  add_three(&counts[n + 1]);
  add_three(&counts[threadIdx.x % n]);
  add_three(&table[7]);
  add_three(&table[blockIdx.x % 2]);
  add_three(&in_block[5]);
  add_three(&in_block[n + 1]);
  add_three(&cells->count);
  add_three(&cells[n - 1].count);
  add(&cells[n - 1].sum, 1.0);
  add(&sums[m * 3 - 2], 1.0);
  add(&sums[n * 2 + 1], 1.0);
  for (int i = threadIdx.x % 2; i < n; i += 2) add_three(&counts[i * 2 + 1]);
}

int main() {
  struct Memory {
    double sums[8];
    Cell cells[2];
    unsigned counts[8];
  };
  Memory *memory, host;
  REQUIRE(cudaMalloc(&memory, sizeof host));
  REQUIRE(cudaMemset(memory, 0, sizeof host));
  gather<<<3, 64>>>(memory->cells, memory->counts, memory->sums, 2, 2);
  REQUIRE(cudaMemcpy(&host, memory, sizeof host, cudaMemcpyDeviceToHost));
  return host.cells[0].count == 576 && host.cells[1].sum == 192 && host.sums[4] == 192 && host.sums[5] == 192 ? 0 : 4;
}
