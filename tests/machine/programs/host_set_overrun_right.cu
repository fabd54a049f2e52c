// cudaMemset clears exactly the bytes of the buffer.
#include "require.cuh"

__global__ void count_up(short* values) { values[threadIdx.x] += 1; }

int main() {
  constexpr size_t elements = 100;
  short* device;
  REQUIRE(cudaMalloc(&device, elements * sizeof(short)));
  REQUIRE(cudaMemset(device, 0, elements * sizeof(short)));
  count_up<<<1, elements>>>(device);
  short host[elements];
  REQUIRE(cudaMemcpy(host, device, sizeof host, cudaMemcpyDeviceToHost));
  return host[0] == 1 && host[elements - 1] == 1 ? 0 : 4;
}
