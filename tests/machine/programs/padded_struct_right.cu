// Structs with padding are copied whole through global, shared and local memory. The padding was never
// written and no computation looks at it: nothing to report.
#include "require.cuh"

struct alignas(16) Entry {
  float score;
  short head;
  char used;
};

__global__ void fill(Entry* entries) {
  entries[threadIdx.x].score = float(threadIdx.x);
  entries[threadIdx.x].head = short(threadIdx.x);
  entries[threadIdx.x].used = 1;
}

__global__ void reverse(const Entry* in, Entry* out) {
  __shared__ uint4 tile[64];
  tile[threadIdx.x] = reinterpret_cast<const uint4*>(in)[threadIdx.x];
  __syncthreads();
  reinterpret_cast<uint4*>(out)[threadIdx.x] = tile[63 - threadIdx.x];
}

int main() {
  Entry *a, *b, host[64];
  REQUIRE(cudaMalloc(&a, sizeof host));
  REQUIRE(cudaMalloc(&b, sizeof host));
  fill<<<1, 64>>>(a);
  reverse<<<1, 64>>>(a, b);
  REQUIRE(cudaMemcpy(a, b, sizeof host, cudaMemcpyDeviceToDevice));
  REQUIRE(cudaMemcpy(host, a, sizeof host, cudaMemcpyDeviceToHost));
  for (int i = 0; i < 64; ++i)
    if (host[i].score != float(63 - i) || host[i].head != 63 - i || host[i].used != 1) return 4;
  return 0;
}
