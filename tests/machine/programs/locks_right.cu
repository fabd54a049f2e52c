// Locks as they are written: taken by compare-and-swap or exchange, given back by an exchange, a compare-and-swap, a volatile
// store or a release; by one thread for itself or for its block; one lock a bucket, held by many lanes at once.
#include "require.cuh"

#include <cuda/atomic>

__device__ int locks[4 + 8];
__device__ int totals[4 + 8];

__global__ void add() {
  __shared__ int part[64];
  const int t = threadIdx.x;
  if (t == 0) {
    while (atomicExch(&locks[0], 1) != 0) {}
    __threadfence();
    totals[0] += 1;
    __threadfence();
    *static_cast<volatile int*>(&locks[0]) = 0;

    while (atomicCAS(&locks[1], 0, 1) != 0) {}
    __threadfence();
    totals[1] += 1;
    __threadfence();
    atomicCAS(&locks[1], 1, 0);

    cuda::atomic_ref<int, cuda::thread_scope_device> third(locks[2]);
    int free = 0;
    while (!third.compare_exchange_weak(free, 1, cuda::memory_order_acquire, cuda::memory_order_relaxed)) free = 0;
    totals[2] += 1;
    third.store(0, cuda::memory_order_release);

    while (atomicCAS(&locks[3], 0, 1) != 0) {}
    __threadfence();
  }
  __syncthreads();
  part[t] = totals[3];
  __syncthreads();
  if (t == 33) totals[3] = part[7] + 1;
  __syncthreads();
  if (t == 0) {
    __threadfence();
    atomicExch(&locks[3], 0);
  }
  for (bool done = t >= 8; !done;) {
    int* lock = &locks[4 + (t + blockIdx.x) % 8];
    if (atomicCAS(lock, 0, 1) != 0) continue;
    __threadfence();
    totals[4 + (t + blockIdx.x) % 8] += 1;
    __threadfence();
    atomicExch(lock, 0);
    done = true;
  }
}

int main() {
  int host[12];
  add<<<4, 64>>>();
  REQUIRE(cudaMemcpyFromSymbol(host, totals, sizeof host));
  for (int value : host)
    if (value != 4) return 4;
  return 0;
}
