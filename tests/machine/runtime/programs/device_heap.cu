// What the host may do with memory of malloc() in a kernel, and when the heap's size and the stack's can be set.
#include "expect.cuh"

__global__ void make(int** kept) {
  kept[0] = static_cast<int*>(malloc(64));
  kept[0][0] = 5;
}
__global__ void use(int** kept, int* out) {
  *out = kept[0][0];
  free(kept[0]);
}
__global__ void ask(size_t bytes, int* out) {
  void* p = malloc(bytes);
  *out = p != nullptr;
  free(p);
}
__device__ __noinline__ int descend(int n) { return n == 0 ? 0 : 1 + descend(n - 1) * (n & 1); }
__global__ void deep(int n, int* out) { *out = descend(n); }

int main() {
  int **kept, *heap, *out, value = 0;
  size_t limit = 0;
  OK(cudaMalloc(&kept, sizeof *kept));
  OK(cudaMalloc(&out, sizeof *out));
  OK(cudaDeviceGetLimit(&limit, cudaLimitMallocHeapSize));
  EXPECT(limit == 8 << 20);
  OK(cudaDeviceSetLimit(cudaLimitMallocHeapSize, 32 << 20));
  OK(cudaDeviceGetLimit(&limit, cudaLimitMallocHeapSize));
  EXPECT(limit == 32 << 20);

  ask<<<1, 1>>>(16 << 20, out);
  OK(cudaMemcpy(&value, out, sizeof value, cudaMemcpyDeviceToHost));
  EXPECT(value == 1);
  ask<<<1, 1>>>(33 << 20, out);
  OK(cudaMemcpy(&value, out, sizeof value, cudaMemcpyDeviceToHost));
  EXPECT(value == 0);
  EXPECT_CODE(cudaErrorInvalidValue, cudaDeviceSetLimit(cudaLimitMallocHeapSize, 64 << 20));
  cudaGetLastError();

  make<<<1, 1>>>(kept);
  OK(cudaMemcpy(&heap, kept, sizeof heap, cudaMemcpyDeviceToHost));
  EXPECT(heap != nullptr);
  EXPECT_CODE(cudaErrorInvalidValue, cudaMemcpy(&value, heap, sizeof value, cudaMemcpyDeviceToHost));
  EXPECT_CODE(cudaErrorInvalidValue, cudaMemset(heap, 0, sizeof value));
  EXPECT_CODE(cudaErrorInvalidValue, cudaFree(heap));
  cudaGetLastError();
  use<<<1, 1>>>(kept, out);
  OK(cudaMemcpy(&value, out, sizeof value, cudaMemcpyDeviceToHost));
  EXPECT(value == 5);

  deep<<<1, 1>>>(20, out);
  OK(cudaDeviceSynchronize());
  OK(cudaDeviceSetLimit(cudaLimitStackSize, 128 << 10));
  deep<<<1, 1>>>(3000, out);
  OK(cudaDeviceSynchronize());

  OK(cudaDeviceReset());
  OK(cudaDeviceSetLimit(cudaLimitMallocHeapSize, 16 << 20));
  return finish();
}
