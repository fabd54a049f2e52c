// Kernels whose faults test_race_messages.py reads the words of; the argument chooses one.
#include <cassert>
#include <cstdlib>

#include <cuda_pipeline.h>

// Thread 0 adds up what four warps stored: the first pair that meets is of one warp, the others are not.
__global__ void across_warps(int* out) {
  __shared__ int part[128];
  part[threadIdx.x] = threadIdx.x;
  int sum = 0;
  if (threadIdx.x == 0)
    for (int i = 0; i < 128; ++i) sum += part[i];
  if (threadIdx.x == 0) *out = sum;
}

__global__ void across_lanes(int* out) {
  __shared__ int part[32];
  part[threadIdx.x] = threadIdx.x;
  out[threadIdx.x] = part[threadIdx.x ^ 1];
}

// A tree without barriers: each step races with each other one.
__global__ void tree(int* out) {
  __shared__ int part[256];
  const int t = threadIdx.x;
  part[t] = t;
  if (t < 128) part[t] += part[t + 128];
  if (t < 64) part[t] += part[t + 64];
  if (t < 32) part[t] += part[t + 32];
  if (t < 16) part[t] += part[t + 16];
  if (t < 8) part[t] += part[t + 8];
  if (t == 0) *out = part[0];
}

// Two faults that have no line in common.
__global__ void two_faults(int* out) {
  __shared__ int part[64];
  part[threadIdx.x] = threadIdx.x;
  out[threadIdx.x] = part[threadIdx.x ^ 32];
  __syncthreads();
  part[threadIdx.x] = 5;
  out[threadIdx.x] += part[threadIdx.x ^ 32];
}

// 64 threads store 8 bytes each over one place: 63 of them meet an earlier store.
__global__ void counted(double* out) { *out = threadIdx.x; }

__global__ void own_copy(const int4* in, int4* out) {
  __shared__ int4 part[32];
  __pipeline_memcpy_async(&part[threadIdx.x], &in[threadIdx.x], 16);
  __pipeline_commit();
  out[threadIdx.x] = part[threadIdx.x];
}

__constant__ int table[32];
__global__ void constant_store(const int* in) { table[threadIdx.x] = in[threadIdx.x]; }

__global__ void failing_assert(int n) {
  assert(n ==
         4);
}

int main(int, char** words) {
  int* memory;
  cudaMalloc(&memory, 4096);
  cudaMemset(memory, 0, 4096);
  switch (std::atoi(words[1])) {
    case 0: across_warps<<<1, 128>>>(memory); break;
    case 1: across_lanes<<<1, 32>>>(memory); break;
    case 2: tree<<<1, 256>>>(memory); break;
    case 3: two_faults<<<1, 64>>>(memory); break;
    case 4: counted<<<1, 64>>>(reinterpret_cast<double*>(memory)); break;
    case 5: own_copy<<<1, 32>>>(reinterpret_cast<int4*>(memory), reinterpret_cast<int4*>(memory) + 64); break;
    case 6: constant_store<<<1, 32>>>(memory); break;
    case 7: failing_assert<<<1, 1>>>(3); break;
  }
  cudaDeviceSynchronize();
  cudaFree(memory);
}
