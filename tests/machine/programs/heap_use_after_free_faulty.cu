// A kernel uses memory of the device's heap that an earlier one has given back.
#include "require.cuh"

__global__ void make(int** kept) {
  kept[threadIdx.x] = static_cast<int*>(malloc(16));
  kept[threadIdx.x][1] = threadIdx.x;
}
__global__ void drop(int** kept) {
  if (threadIdx.x == 3) free(kept[threadIdx.x]);
}
__global__ void use(int** kept, int* out) {
  out[threadIdx.x] = kept[threadIdx.x][1];  // @finding
}

int main() {
  int *out, **kept, host[32];
  REQUIRE(cudaMalloc(&out, sizeof host));
  REQUIRE(cudaMalloc(&kept, 32 * sizeof *kept));
  make<<<1, 32>>>(kept);
  drop<<<1, 32>>>(kept);
  use<<<1, 32>>>(kept, out);
  REQUIRE(cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost));
  return 0;
}
