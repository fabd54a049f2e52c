// A compare-and-swap loop takes its first guess from a plain load, as the Programming Guide's atomicAdd(double) does: what the
// guess is worth, the swap finds out.
#include "require.cuh"

__device__ void add(double* at, double value) {
  auto* word = reinterpret_cast<unsigned long long*>(at);
  unsigned long long old = *word, seen;
  do {
    seen = old;
    old = atomicCAS(word, seen, __double_as_longlong(value + __longlong_as_double(seen)));
  } while (old != seen);
}

__device__ void raise(float* at, float value) {
  auto* word = reinterpret_cast<int*>(at);
  int old = *word, seen;
  do {
    seen = old;
    if (__int_as_float(seen) >= value) break;
    old = atomicCAS(word, seen, __float_as_int(value));
  } while (old != seen);
}

__device__ unsigned turns;

__device__ void add_three(unsigned* at) {
  unsigned old = *at, seen;
  do {
    seen = old;
    old = atomicCAS(at, seen, seen + 3);
  } while (old != seen);
}

__global__ void gather(double* sum, float* largest, unsigned short* count) {
  __shared__ unsigned in_block;
  if (threadIdx.x == 0) in_block = 0;
  __syncthreads();
  add_three(&in_block);
  add_three(&turns);
  __syncthreads();
  if (in_block != 192) __trap();
  add(sum, 0.5);
  raise(largest, threadIdx.x + blockIdx.x);
  unsigned short old = *count, seen;
  do {
    seen = old;
    old = atomicCAS(count, seen, static_cast<unsigned short>(seen + 1));
  } while (old != seen);
}

int main() {
  double *sum, total;
  float *largest, most;
  unsigned short *count, counted;
  REQUIRE(cudaMalloc(&sum, sizeof total));
  REQUIRE(cudaMalloc(&largest, sizeof most));
  REQUIRE(cudaMalloc(&count, sizeof counted));
  REQUIRE(cudaMemset(sum, 0, sizeof total));
  REQUIRE(cudaMemset(largest, 0, sizeof most));
  REQUIRE(cudaMemset(count, 0, sizeof counted));
  gather<<<3, 64>>>(sum, largest, count);
  REQUIRE(cudaMemcpy(&total, sum, sizeof total, cudaMemcpyDeviceToHost));
  REQUIRE(cudaMemcpy(&most, largest, sizeof most, cudaMemcpyDeviceToHost));
  REQUIRE(cudaMemcpy(&counted, count, sizeof counted, cudaMemcpyDeviceToHost));
  return total == 96 && most == 65 && counted == 192 ? 0 : 4;
}
