// A kernel that never ends. With a launch timeout the host hears of it, as on a GPU with a display.
#include "expect.cuh"

__global__ void spin(volatile int* flag) {
  while (*flag == 0) {
  }
}

__global__ void count(unsigned long long* n) {
  for (unsigned long long i = 1; i != 0; i += 2) *n = i;  // the compiler gives the loop's copies line 0
}

int main(int argc, char** argv) {
  unsigned long long* n;
  OK(cudaMalloc(&n, 8));
  OK(cudaMemset(n, 0, 8));
  if (argc > 1) spin<<<1, 32>>>(reinterpret_cast<int*>(n));
  else count<<<1, 1>>>(n);
  EXPECT_CODE(cudaErrorLaunchTimeout, cudaDeviceSynchronize());
  return finish();
}
