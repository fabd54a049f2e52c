// Calls by address: from tables in constant and global memory, from structs, from a variable that the host reads and passes
// back, lanes of one warp that go to different functions (one of which calls itself), and structs by value: as the host computes.
#include "require.cuh"

#define CALLED __host__ __device__ __noinline__

struct Record {
  int v[9];
  double scale;
  char tag;
};
struct __align__(16) Four {
  float x[4];
};

CALLED int plus_one(int x) { return x + 1; }
CALLED int squared(int x) { return x * x; }
CALLED int fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }
CALLED Record turned(Record r, int by) {
  Record result = r;
  for (int i = 0; i < 9; ++i) result.v[i] = r.v[(i + by) % 9] + by;
  result.scale += 0.5;
  result.tag = 'x';
  return result;
}
CALLED Four mixed(Four f, unsigned char c, short s, long long l, bool b) {
  for (float& x : f.x) x += c + s + l + (b ? 0.5f : 0.25f);
  return f;
}
CALLED void store(int* to, int x) { *to = x; }

using Number = int (*)(int);
struct Named {
  char tag;
  Number f;
  short bias;
};

__constant__ Number numbers[] = {plus_one, squared, fibonacci};
__device__ Named named[] = {{'p', plus_one, 10}, {'s', squared, -20}, {'f', fibonacci, 30}};
__device__ Number chosen = squared;
__device__ Record (*turn)(Record, int) = turned;
__device__ Four (*mix)(Four, unsigned char, short, long long, bool) = mixed;
__device__ void (*put)(int*, int) = store;

__host__ int as_called(int which, int x) { return which == 0 ? plus_one(x) : which == 1 ? squared(x) : fibonacci(x); }

__global__ void from_tables(int* out) {
  const int t = threadIdx.x;
  const Named& n = named[(t + 1) % 3];
  int sum = numbers[t % 3](t % 9);
  if (t & 1) sum += n.f(t % 8) + n.tag + n.bias;
  put(out + t, sum);
}
__global__ void from_host(int* out, Number f) { out[threadIdx.x] = f(threadIdx.x); }
__global__ void structs(double* out) {
  const int t = threadIdx.x;
  Record r{};
  r.v[t % 9] = t;
  r.scale = t;
  r = turn(r, t % 5);
  Four f{{1, 2, 3, float(t)}};
  f = mix(f, t, -3, 1ll << 20, t & 1);
  out[t] = r.v[t % 9] + r.scale + r.tag + f.x[0] + f.x[3];
}

int main() {
  constexpr int n = 96;
  int *out, got[n];
  double *sums, got_sums[n];
  REQUIRE(cudaMalloc(&out, sizeof got));
  REQUIRE(cudaMalloc(&sums, sizeof got_sums));
  from_tables<<<1, n>>>(out);
  REQUIRE(cudaMemcpy(got, out, sizeof got, cudaMemcpyDeviceToHost));
  for (int t = 0; t < n; ++t) {
    const int k = (t + 1) % 3;
    if (got[t] != as_called(t % 3, t % 9) + (t & 1 ? as_called(k, t % 8) + "psf"[k] + (k == 0 ? 10 : k == 1 ? -20 : 30) : 0)) return 9;
  }
  Number f;
  REQUIRE(cudaMemcpyFromSymbol(&f, chosen, sizeof f));
  from_host<<<1, n>>>(out, f);
  REQUIRE(cudaMemcpy(got, out, sizeof got, cudaMemcpyDeviceToHost));
  for (int t = 0; t < n; ++t)
    if (got[t] != t * t) return 9;
  structs<<<1, n>>>(sums);
  REQUIRE(cudaMemcpy(got_sums, sums, sizeof got_sums, cudaMemcpyDeviceToHost));
  for (int t = 0; t < n; ++t) {
    Record r{};
    r.v[t % 9] = t;
    r.scale = t;
    r = turned(r, t % 5);
    const Four q = mixed(Four{{1, 2, 3, float(t)}}, t, -3, 1ll << 20, t & 1);
    if (got_sums[t] != r.v[t % 9] + r.scale + r.tag + q.x[0] + q.x[3]) return 9;
  }
  return 0;
}
