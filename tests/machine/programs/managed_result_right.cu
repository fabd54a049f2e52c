// The host adds up managed memory after it has waited for the kernel that writes it.
#include "require.cuh"

__global__ void square(int* out) {
  out[threadIdx.x] = threadIdx.x * threadIdx.x;
}

int main() {
  int* result;
  REQUIRE(cudaMallocManaged(&result, 64 * sizeof(int)));
  for (int i = 0; i < 64; ++i) result[i] = 0;
  square<<<1, 64>>>(result);
  REQUIRE(cudaDeviceSynchronize());
  int sum = 0;
  for (int i = 0; i < 64; ++i) sum += result[i];
  std::printf("%d\n", sum);
  REQUIRE(cudaFree(result));
  return 0;
}
