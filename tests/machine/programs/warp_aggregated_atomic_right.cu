// One lane adds for all active lanes, and a shuffle hands out the places.
#include "require.cuh"

__global__ void compact(const int* in, int* out, int* count) {
  int value = in[blockIdx.x * 64 + threadIdx.x], lane = threadIdx.x % 32;
  if (value % 3 == 0) {
    unsigned active = __activemask();
    int leader = __ffs(active) - 1, first = 0;
    if (lane == leader) first = atomicAdd(count, __popc(active));
    first = __shfl_sync(active, first, leader);
    out[first + __popc(active & ((1u << lane) - 1))] = value;
  }
}

int main() {
  constexpr int n = 4 * 64;
  int *in, *out, *count, host[n], kept = 0, expected = 0;
  long long sum = 0;
  for (int i = 0; i < n; ++i) {
    host[i] = i;
    if (i % 3 == 0) expected += 1, sum += i;
  }
  REQUIRE(cudaMalloc(&in, sizeof host));
  REQUIRE(cudaMalloc(&out, sizeof host));
  REQUIRE(cudaMalloc(&count, sizeof(int)));
  REQUIRE(cudaMemset(count, 0, sizeof(int)));
  REQUIRE(cudaMemcpy(in, host, sizeof host, cudaMemcpyHostToDevice));
  compact<<<n / 64, 64>>>(in, out, count);
  REQUIRE(cudaMemcpy(&kept, count, sizeof kept, cudaMemcpyDeviceToHost));
  if (kept != expected) return 4;
  REQUIRE(cudaMemcpy(host, out, kept * sizeof(int), cudaMemcpyDeviceToHost));
  for (int i = 0; i < kept; ++i) sum -= host[i];
  return sum == 0 ? 0 : 4;
}
