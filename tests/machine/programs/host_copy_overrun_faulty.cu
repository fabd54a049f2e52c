// The host copies one row more than the device buffer holds.
#include "require.cuh"

#include <vector>

__global__ void twice(float* values) { values[threadIdx.x] *= 2.0f; }

int main() {
  constexpr int rows = 7, columns = 16;
  std::vector<float> host((rows + 1) * columns, 1.0f);
  float* device;
  REQUIRE(cudaMalloc(&device, rows * columns * sizeof(float)));
  cudaMemcpy(device, host.data(), (rows + 1) * columns * sizeof(float), cudaMemcpyHostToDevice);
  twice<<<1, rows * columns>>>(device);
  return 0;
}
