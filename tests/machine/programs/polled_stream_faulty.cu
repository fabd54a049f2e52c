// The host asks once whether the stream is done, and reads the pinned result whatever the answer.
#include "require.cuh"

__global__ void fill(int* out) { out[threadIdx.x] = 3; }

int main() {
  int* result;
  cudaStream_t stream;
  REQUIRE(cudaStreamCreate(&stream));
  REQUIRE(cudaMallocHost(&result, 32 * sizeof(int)));
  result[0] = 0;
  fill<<<1, 32, 0, stream>>>(result);
  const cudaError_t state = cudaStreamQuery(stream);
  std::printf("%d: %d\n", state, result[0]);
  REQUIRE(cudaStreamSynchronize(stream));
  return 0;
}
