// Two launches count in device, managed and local memory, and print once each.
#include "require.cuh"

__device__ unsigned tickets;

__global__ void draw(int* managed, int* fresh) {
  const unsigned ticket = atomicAdd(&tickets, 1u);
  atomicAdd(managed, 1);
  fresh[ticket] += 1 + static_cast<int>(ticket);
  printf("ticket %u\n", ticket);
}

int main() {
  int *managed, *fresh, host[2];
  REQUIRE(cudaMallocManaged(&managed, sizeof(int)));
  REQUIRE(cudaMalloc(&fresh, sizeof host));
  REQUIRE(cudaMemset(fresh, 0, sizeof host));
  *managed = 5;
  for (int i = 0; i < 2; ++i) {
    draw<<<1, 1>>>(managed, fresh);
    REQUIRE(cudaDeviceSynchronize());
  }
  REQUIRE(cudaMemcpy(host, fresh, sizeof host, cudaMemcpyDeviceToHost));
  return *managed == 7 && host[0] == 1 && host[1] == 2 ? 0 : 4;
}
