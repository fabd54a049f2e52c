// Functions that are called, not inlined, with arrays of their own, an odd number of bytes in the frame below, structs by
// value in and out, calls inside calls, in divergent branches, and pointers to the caller's arrays: as the host computes.
#include "require.cuh"

struct Record {
  int v[6];
  double scale;
  char tag[8];
};

#define CALLED __host__ __device__ __noinline__

CALLED int sum_picked(int x, int n) {
  int table[8];
  for (int i = 0; i < 8; ++i) table[i] = x + i * n;
  int sum = 0;
  for (int i = 0; i < n; ++i) sum += table[(x + i) & 7];
  return sum;
}

CALLED long long odd_frame(const int* given, int n) {
  char letters[5];
  for (int i = 0; i < 5; ++i) letters[i] = static_cast<char>(given[i % n] + i);
  long long value = sum_picked(given[0], n);
  for (int i = 0; i < n; ++i) value = value * 7 + letters[(given[i] + i) % 5 & 3];
  return value;
}

CALLED Record turned(Record r, int by) {
  int kept[6];
  for (int i = 0; i < 6; ++i) kept[i] = sum_picked(r.v[i], by & 7) + i;
  Record result;
  for (int i = 0; i < 6; ++i) result.v[i] = kept[(i + by) % 6];
  result.scale = r.scale * by;
  for (int i = 0; i < 8; ++i) result.tag[i] = r.tag[(i + by) % 8];
  return result;
}

CALLED void fill(int* array, int n, int x) {
  for (int i = 0; i < n; ++i) array[i] = x * i + 1;
}

__host__ __device__ long long work(int t) {
  int own[7];
  fill(own, 7, t & 3);
  Record r;
  for (int i = 0; i < 6; ++i) r.v[i] = t & i;
  r.scale = t + 0.5;
  for (int i = 0; i < 8; ++i) r.tag[i] = static_cast<char>(t + i);
  if (t & 1) r = turned(r, 3 + (t & 3));
  else if (t & 2) fill(own + 2, 5, t & 7);
  else r = turned(turned(r, 2), 5);
  long long value = odd_frame(own, 1 + t % 7);
  for (int i = 0; i < 7; ++i) value = value * 3 + own[(i * t) % 7];
  for (int i = 0; i < 6; ++i) value = value * 31 + r.v[i];
  return value + static_cast<long long>(r.scale * 2) + r.tag[t % 8];
}

__global__ void work_all(long long* out) { out[threadIdx.x] = work(threadIdx.x); }

int main() {
  constexpr int n = 96;
  long long *out, got[n];
  REQUIRE(cudaMalloc(&out, sizeof got));
  work_all<<<1, n>>>(out);
  REQUIRE(cudaMemcpy(got, out, sizeof got, cudaMemcpyDeviceToHost));
  for (int t = 0; t < n; ++t)
    if (got[t] != work(t)) return 9;
  return 0;
}
