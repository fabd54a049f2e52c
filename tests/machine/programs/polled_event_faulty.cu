// The host asks once whether an event has come, and reads managed memory whatever the answer.
#include "require.cuh"

__global__ void fill(int* out) { out[threadIdx.x] = 3; }

int main() {
  int* result;
  cudaStream_t stream;
  cudaEvent_t filled;
  REQUIRE(cudaStreamCreate(&stream));
  REQUIRE(cudaEventCreate(&filled));
  REQUIRE(cudaMallocManaged(&result, 32 * sizeof(int)));
  result[0] = 0;
  fill<<<1, 32, 0, stream>>>(result);
  REQUIRE(cudaEventRecord(filled, stream));
  const cudaError_t state = cudaEventQuery(filled);
  std::printf("%d: %d\n", state, result[0]);
  REQUIRE(cudaEventSynchronize(filled));
  return 0;
}
