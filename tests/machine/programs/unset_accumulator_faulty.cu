// The accumulators of a matrix product are never set to zero: registers that nothing has written.
#include "require.cuh"

__global__ void multiply(const unsigned* a, const unsigned* b, float* d) {
  float sum[4];
  asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"  // @finding
               : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
               : "r"(a[threadIdx.x]), "r"(a[32 + threadIdx.x]), "r"(b[threadIdx.x]));  // @finding
  for (int i = 0; i < 4; ++i) d[i * 32 + threadIdx.x] = sum[i];
}

int main() {
  unsigned *a, *b;
  float *d, host[128];
  REQUIRE(cudaMalloc(&a, 256));
  REQUIRE(cudaMalloc(&b, 128));
  REQUIRE(cudaMalloc(&d, sizeof host));
  REQUIRE(cudaMemset(a, 0, 256));
  REQUIRE(cudaMemset(b, 0, 128));
  multiply<<<1, 32>>>(a, b, d);
  REQUIRE(cudaMemcpy(host, d, sizeof host, cudaMemcpyDeviceToHost));
  return 0;
}
