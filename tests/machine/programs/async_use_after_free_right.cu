// cudaFreeAsync is enqueued after the last kernel that reads the memory, in the same stream.
#include "require.cuh"

__global__ void fill(float* p) { p[threadIdx.x] = float(threadIdx.x); }

__global__ void copy(const float* in, float* out) {
  out[threadIdx.x] = in[threadIdx.x];
}

int main() {
  cudaStream_t stream;
  REQUIRE(cudaStreamCreate(&stream));
  float *scratch, *out, host[64];
  REQUIRE(cudaMalloc(&out, sizeof host));
  REQUIRE(cudaMallocAsync(&scratch, sizeof host, stream));
  fill<<<1, 64, 0, stream>>>(scratch);
  copy<<<1, 64, 0, stream>>>(scratch, out);
  REQUIRE(cudaFreeAsync(scratch, stream));
  REQUIRE(cudaStreamSynchronize(stream));
  REQUIRE(cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost));
  for (int i = 0; i < 64; ++i)
    if (host[i] != float(i)) return 4;
  return 0;
}
