// The host adds up managed memory that a kernel may still write.
#include "require.cuh"

__global__ void square(int* out) {
  out[threadIdx.x] = threadIdx.x * threadIdx.x;  // @finding
}

int main() {
  int* result;
  REQUIRE(cudaMallocManaged(&result, 64 * sizeof(int)));
  for (int i = 0; i < 64; ++i) result[i] = 0;
  square<<<1, 64>>>(result);
  int sum = 0;
  for (int i = 0; i < 64; ++i) sum += result[i];
  REQUIRE(cudaDeviceSynchronize());
  std::printf("%d\n", sum);
  REQUIRE(cudaFree(result));
  return 0;
}
