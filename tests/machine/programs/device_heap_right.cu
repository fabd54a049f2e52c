// The heap of the device: memory that a thread gets and gives back, that another thread gives back behind a barrier, that lives
// from one kernel to the next, objects of several classes, arrays, alignment; null when it is exhausted. The host can neither
// copy nor free it.
#include "require.cuh"

#include <new>

struct Base {
  int own;
  __device__ explicit Base(int x) : own(x) {}
  __device__ virtual int value(int x) const { return own + x; }
  __device__ virtual ~Base() {}
};
struct Twice : Base {
  double more[3];
  __device__ explicit Twice(int x) : Base(x), more{1, 2, 3} {}
  __device__ int value(int x) const override { return 2 * x + own + static_cast<int>(more[x % 3]); }
  __device__ ~Twice() override { own = -1; }
};
struct alignas(64) Wide {
  int x[16];
};

__global__ void alone(int* out) {
  const int t = threadIdx.x;
  int* p = static_cast<int*>(malloc((t + 1) * sizeof(int)));
  for (int i = 0; i <= t; ++i) p[i] = i;
  int sum = 0;
  for (int i = 0; i <= t; ++i) sum += p[i];
  free(p);
  free(nullptr);
  Base* b = t % 2 ? new Twice(t) : new Base(t);
  sum += b->value(t);
  delete b;
  Wide* w = new Wide[2];
  sum += reinterpret_cast<unsigned long long>(w) % 64 != 0;
  delete[] w;
  out[t] = sum;
}

__global__ void make(int** kept, Base** objects) {
  const int t = threadIdx.x + blockIdx.x * blockDim.x;
  kept[t] = new int[4];
  for (int i = 0; i < 4; ++i) kept[t][i] = 10 * t + i;
  objects[t] = t % 3 ? new Twice(t) : new Base(t);
}

__global__ void use(int** kept, Base** objects, int* out) {
  const int t = threadIdx.x + blockIdx.x * blockDim.x, n = gridDim.x * blockDim.x;
  out[t] = kept[n - 1 - t][t & 3] + objects[t]->value(1);
}

__global__ void drop(int** kept, Base** objects) {
  const int t = threadIdx.x + blockIdx.x * blockDim.x, n = gridDim.x * blockDim.x;
  delete[] kept[n - 1 - t];
  delete objects[t];
}

__global__ void shared_by_block(int* out) {
  __shared__ int* all;
  if (threadIdx.x == 0) all = static_cast<int*>(malloc(blockDim.x * sizeof(int)));
  __syncthreads();
  all[threadIdx.x] = threadIdx.x;
  __syncthreads();
  out[threadIdx.x] = all[blockDim.x - 1 - threadIdx.x];
  __syncthreads();
  if (threadIdx.x == 33) free(all);
}

__global__ void exhaust(int* out, void** first) {
  void* all[16];
  int n = 0;
  while (n < 16 && (all[n] = malloc(1 << 20)) != nullptr) ++n;
  for (int i = 1; i < n; ++i) free(all[i]);
  void* again = malloc(1 << 20);
  out[0] = n;
  out[1] = again != nullptr;
  free(again);
  *first = n != 0 ? all[0] : nullptr;
}

__global__ void drop_one(void** p) { free(*p); }

int main() {
  constexpr int n = 64;
  int *out, **kept, got[n];
  Base** objects;
  void **first, *heap;
  size_t limit = 0;
  REQUIRE(cudaMalloc(&out, sizeof got));
  REQUIRE(cudaMalloc(&kept, n * sizeof *kept));
  REQUIRE(cudaMalloc(&objects, n * sizeof *objects));
  REQUIRE(cudaMalloc(&first, sizeof *first));
  REQUIRE(cudaDeviceGetLimit(&limit, cudaLimitMallocHeapSize));
  if (limit != 8 << 20) return 9;
  REQUIRE(cudaDeviceSetLimit(cudaLimitMallocHeapSize, 4 << 20));
  alone<<<1, n>>>(out);
  REQUIRE(cudaMemcpy(got, out, sizeof got, cudaMemcpyDeviceToHost));
  for (int t = 0; t < n; ++t)
    if (got[t] != t * (t + 1) / 2 + (t % 2 ? 3 * t + t % 3 + 1 : 2 * t)) return 9;
  make<<<2, n / 2>>>(kept, objects);
  use<<<4, n / 4>>>(kept, objects, out);
  drop<<<1, n>>>(kept, objects);
  REQUIRE(cudaMemcpy(got, out, sizeof got, cudaMemcpyDeviceToHost));
  for (int t = 0; t < n; ++t)
    if (got[t] != 10 * (n - 1 - t) + (t & 3) + (t % 3 ? 2 + t + 2 : t + 1)) return 9;
  shared_by_block<<<1, n>>>(out);
  REQUIRE(cudaMemcpy(got, out, sizeof got, cudaMemcpyDeviceToHost));
  for (int t = 0; t < n; ++t)
    if (got[t] != n - 1 - t) return 9;
  exhaust<<<1, 1>>>(out, first);
  REQUIRE(cudaMemcpy(got, out, 2 * sizeof(int), cudaMemcpyDeviceToHost));
  REQUIRE(cudaMemcpy(&heap, first, sizeof heap, cudaMemcpyDeviceToHost));
  if (got[0] != 3 || got[1] != 1) return 9;
  drop_one<<<1, 1>>>(first);
  REQUIRE(cudaDeviceSynchronize());
  return 0;
}
