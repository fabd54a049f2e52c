// The host copies exactly the rows that the device buffer holds.
#include "require.cuh"

#include <vector>

__global__ void twice(float* values) { values[threadIdx.x] *= 2.0f; }

int main() {
  constexpr int rows = 7, columns = 16;
  std::vector<float> host((rows + 1) * columns, 1.0f);
  float* device;
  REQUIRE(cudaMalloc(&device, rows * columns * sizeof(float)));
  REQUIRE(cudaMemcpy(device, host.data(), rows * columns * sizeof(float), cudaMemcpyHostToDevice));
  twice<<<1, rows * columns>>>(device);
  REQUIRE(cudaMemcpy(host.data(), device, rows * columns * sizeof(float), cudaMemcpyDeviceToHost));
  return host[0] == 2.0f && host[rows * columns - 1] == 2.0f ? 0 : 4;
}
