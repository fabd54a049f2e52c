// The host reads a pinned result before anything has waited for the copy that brings it.
#include "require.cuh"

__global__ void fill(int* out) { out[threadIdx.x] = 3; }

int main() {
  int *device, *pinned;
  cudaStream_t stream;
  REQUIRE(cudaStreamCreate(&stream));
  REQUIRE(cudaMalloc(&device, 64 * sizeof(int)));
  REQUIRE(cudaMallocHost(&pinned, 64 * sizeof(int)));
  for (int i = 0; i < 64; ++i) pinned[i] = 0;
  fill<<<1, 64, 0, stream>>>(device);
  REQUIRE(cudaMemcpyAsync(pinned, device, 64 * sizeof(int), cudaMemcpyDeviceToHost, stream));
  int sum = 0;
  for (int i = 0; i < 64; ++i) sum += pinned[i];
  REQUIRE(cudaDeviceSynchronize());
  std::printf("%d\n", sum);
  return 0;
}
