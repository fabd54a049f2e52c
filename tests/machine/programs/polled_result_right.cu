// The host polls a stream and an event until they answer that they are done, and then reads the results.
#include "require.cuh"

__global__ void fill(int* out) { out[threadIdx.x] = 3; }

int main() {
  int *pinned, *managed, *device, *copied;
  cudaStream_t stream;
  cudaEvent_t filled;
  REQUIRE(cudaStreamCreate(&stream));
  REQUIRE(cudaEventCreate(&filled));
  REQUIRE(cudaMalloc(&device, 32 * sizeof(int)));
  REQUIRE(cudaMallocHost(&pinned, 32 * sizeof(int)));
  REQUIRE(cudaMallocHost(&copied, 1024 * sizeof(int)));
  REQUIRE(cudaMallocManaged(&managed, 32 * sizeof(int)));
  fill<<<1, 32, 0, stream>>>(pinned);
  fill<<<1, 32, 0, stream>>>(device);
  REQUIRE(cudaMemcpyAsync(copied, device, 32 * sizeof(int), cudaMemcpyDeviceToHost, stream));
  for (int asked = 0; cudaStreamQuery(stream) == cudaErrorNotReady; ++asked) copied[512] = asked;
  int sum = pinned[31] + copied[31];
  fill<<<1, 32, 0, stream>>>(managed);
  REQUIRE(cudaEventRecord(filled, stream));
  while (cudaEventQuery(filled) == cudaErrorNotReady) {
  }
  sum += managed[31];
  REQUIRE(cudaDeviceSynchronize());
  return sum == 9 ? 0 : 4;
}
