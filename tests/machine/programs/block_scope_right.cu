// Scopes that reach: fences, atomics and flags of block scope inside a block, those of device scope between blocks, and both
// in a row, where a thread passes on what another one of its block has told it.
#include "require.cuh"

#include <cuda/atomic>

__global__ void relay(int* data, int* flags, int* out) {
  __shared__ int handed;
  cuda::atomic_ref<int, cuda::thread_scope_block> in_block(handed);
  cuda::atomic_ref<int, cuda::thread_scope_device> released(flags[0]);
  if (threadIdx.x == 0) handed = 0;
  __syncthreads();
  if (blockIdx.x == 0) {
    if (threadIdx.x == 0) {
      data[0] = 5;
      in_block.store(1, cuda::memory_order_release);
    } else if (threadIdx.x == 32) {
      while (in_block.load(cuda::memory_order_acquire) == 0) {}
      data[1] = data[0] + 1;
      released.store(1, cuda::memory_order_release);
    }
  } else {
    if (threadIdx.x == 0) {
      while (atomicAdd(&flags[0], 0) == 0) {}
      __threadfence_block();
      __threadfence();
      data[2] = data[0] + data[1];
      __threadfence_block();
      atomicExch_block(&flags[1], 1);
    } else if (threadIdx.x == 32) {
      while (atomicAdd_block(&flags[1], 0) == 0) {}
      __threadfence_block();
      *out = data[0] + data[2];
    }
  }
}

int main() {
  int *data, *flags, *out, result;
  REQUIRE(cudaMalloc(&data, 3 * sizeof *data));
  REQUIRE(cudaMalloc(&flags, 2 * sizeof *flags));
  REQUIRE(cudaMalloc(&out, sizeof *out));
  REQUIRE(cudaMemset(flags, 0, 2 * sizeof *flags));
  relay<<<2, 64>>>(data, flags, out);
  REQUIRE(cudaMemcpy(&result, out, sizeof result, cudaMemcpyDeviceToHost));
  return result == 16 ? 0 : 4;
}
