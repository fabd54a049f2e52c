// Objects of the device's heap that one kernel makes, and the threads of another delete: two threads the same.
#include "require.cuh"

__global__ void make(double** kept) { kept[threadIdx.x] = new double(threadIdx.x); }
__global__ void drop(double** kept, int step) {
  delete kept[threadIdx.x / step];  // @finding
}

int main() {
  double** kept;
  REQUIRE(cudaMalloc(&kept, 32 * sizeof *kept));
  make<<<1, 32>>>(kept);
  drop<<<1, 32>>>(kept, 2);
  REQUIRE(cudaDeviceSynchronize());
  return 0;
}
