// Each block clears its own slice of the output and then adds into the slices of all: nothing orders the
// clearing of one before the adding of another.
#include "require.cuh"

__global__ void scatter_add(const float* in, float* out, int n) {
  out[blockIdx.x * 32 + threadIdx.x] = 0.0f;  // @finding
  __syncthreads();
  int i = blockIdx.x * 32 + threadIdx.x;
  atomicAdd(&out[(i * 7) % n], in[i]);
}

int main() {
  constexpr int n = 8 * 32;
  float *in, *out, host[n];
  for (float& v : host) v = 1.0f;
  REQUIRE(cudaMalloc(&in, sizeof host));
  REQUIRE(cudaMalloc(&out, sizeof host));
  REQUIRE(cudaMemcpy(in, host, sizeof host, cudaMemcpyHostToDevice));
  scatter_add<<<n / 32, 32>>>(in, out, n);
  REQUIRE(cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost));
  return 0;
}
