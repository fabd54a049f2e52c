// A failed device assertion: the message on standard error, and the sticky error.
#include <cassert>

#include "expect.cuh"

__global__ void check(int n) { assert(n < 3 && "too many"); }

int main() {
  check<<<1, 2>>>(2);
  OK(cudaDeviceSynchronize());
  check<<<1, 2>>>(5);
  EXPECT_CODE(cudaErrorAssert, cudaDeviceSynchronize());
  EXPECT_CODE(cudaErrorAssert, cudaPeekAtLastError());
  return finish();
}
