// cudaFreeAsync is enqueued before the kernel that reads the memory, in the same stream: by the time the
// kernel runs, the bytes are free.
#include "require.cuh"

__global__ void fill(float* p) { p[threadIdx.x] = float(threadIdx.x); }

__global__ void copy(const float* in, float* out) {
  out[threadIdx.x] = in[threadIdx.x];  // @finding
}

int main() {
  cudaStream_t stream;
  REQUIRE(cudaStreamCreate(&stream));
  float *scratch, *out, host[64];
  REQUIRE(cudaMalloc(&out, sizeof host));
  REQUIRE(cudaMallocAsync(&scratch, sizeof host, stream));
  fill<<<1, 64, 0, stream>>>(scratch);
  REQUIRE(cudaFreeAsync(scratch, stream));
  copy<<<1, 64, 0, stream>>>(scratch, out);
  cudaStreamSynchronize(stream);
  return 0;
}
