// Kernels leave results in mapped and managed memory and say so by a flag: one fences before the flag, one releases it,
// and of one the last block to finish fences for all.
#include <cuda/atomic>

#include "require.cuh"

using Flag = cuda::atomic_ref<int, cuda::thread_scope_system>;

__global__ void fenced(int* data, volatile int* ready, volatile int* done) {
  data[threadIdx.x] = 1;
  __syncthreads();
  if (threadIdx.x != 0) return;
  __threadfence_system();
  *ready = 1;
  while (*done < 1) {
  }
}

__global__ void released(int* data, int* ready, int* done) {
  data[threadIdx.x] = 2;
  __syncthreads();
  if (threadIdx.x != 0) return;
  Flag(*ready).store(2, cuda::memory_order_release);
  while (Flag(*done).load(cuda::memory_order_acquire) < 2) {
  }
}

__global__ void by_last(int* data, unsigned* finished, volatile int* ready, volatile int* done) {
  data[blockIdx.x] = 3;
  __threadfence();
  if (atomicAdd(finished, 1u) + 1 != gridDim.x) return;
  __threadfence_system();
  *ready = 3;
  while (*done < 3) {
  }
}

int main() {
  int *data, *flags;
  unsigned* finished;
  REQUIRE(cudaHostAlloc(&data, 64 * sizeof(int), cudaHostAllocMapped));
  REQUIRE(cudaMallocManaged(&flags, 2 * sizeof(int)));
  REQUIRE(cudaMalloc(&finished, sizeof(unsigned)));
  REQUIRE(cudaMemset(finished, 0, sizeof(unsigned)));
  flags[0] = flags[1] = 0;
  bool right = true;
  for (int round = 1; round <= 3; ++round) {
    if (round == 1) fenced<<<1, 64>>>(data, flags, flags + 1);
    if (round == 2) released<<<1, 64>>>(data, flags, flags + 1);
    if (round == 3) by_last<<<4, 1>>>(data, finished, flags, flags + 1);
    while (__atomic_load_n(flags, __ATOMIC_ACQUIRE) < round) {
    }
    right = right && data[0] == round && data[3] == round;
    __atomic_store_n(flags + 1, round, __ATOMIC_RELEASE);
    REQUIRE(cudaDeviceSynchronize());
  }
  return right ? 0 : 4;
}
