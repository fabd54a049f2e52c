// A lane works under a lock over and over until the others of its warp and another block have had it: every turn of the
// first lane that ends inside its critical section keeps the others waiting.
#include "require.cuh"

__device__ int lock, served, sink;

__device__ void take() {
  while (atomicCAS(&lock, 0, 1) != 0) {}
  __threadfence();
}
__device__ void leave() {
  __threadfence();
  atomicExch(&lock, 0);
}

__global__ void serve(int work, int others) {
  if (threadIdx.x == 0 && blockIdx.x == 0) {
    for (bool all = false; !all;) {
      take();
      all = served == others;
      int x = 1;
      for (int i = 0; i < work; ++i) asm volatile("mad.lo.s32 %0, %0, 7, 1;" : "+r"(x));
      sink = x;
      leave();
    }
  } else {
    take();
    served += 1;
    leave();
  }
}

int main() {
  for (int work : {1, 20, 61}) {
    int none = 0;
    REQUIRE(cudaMemcpyToSymbol(served, &none, sizeof none));
    serve<<<2, 2>>>(work, 3);
    REQUIRE(cudaDeviceSynchronize());
  }
  return 0;
}
