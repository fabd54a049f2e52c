// The producer releases a flag at device scope, the consumer spins on it with acquire loads.
#include "require.cuh"

#include <cuda/atomic>

__global__ void relay(int* data, unsigned* flag, int* out) {
  cuda::atomic_ref<unsigned, cuda::thread_scope_device> ready(*flag);
  if (blockIdx.x == 0) {
    data[threadIdx.x] = 5;
    __syncthreads();
    if (threadIdx.x == 0) ready.store(1, cuda::memory_order_release);
  } else {
    if (threadIdx.x == 0) {
      while (ready.load(cuda::memory_order_acquire) == 0) {}
    }
    __syncthreads();
    out[threadIdx.x] = data[threadIdx.x];
  }
}

int main() {
  int *data, *out, host[32];
  unsigned* flag;
  REQUIRE(cudaMalloc(&data, sizeof host));
  REQUIRE(cudaMalloc(&out, sizeof host));
  REQUIRE(cudaMalloc(&flag, sizeof(unsigned)));
  REQUIRE(cudaMemset(flag, 0, sizeof(unsigned)));
  relay<<<2, 32>>>(data, flag, out);
  REQUIRE(cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost));
  return host[0] == 5 && host[31] == 5 ? 0 : 4;
}
