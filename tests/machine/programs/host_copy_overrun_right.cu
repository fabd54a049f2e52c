// The host copies exactly the rows that the device buffer holds.
#include "require.cuh"

#include <vector>

int main() {
  constexpr int rows = 7, columns = 16;
  std::vector<float> host((rows + 1) * columns, 1.0f);
  float* device;
  REQUIRE(cudaMalloc(&device, rows * columns * sizeof(float)));
  REQUIRE(cudaMemcpy(device, host.data(), rows * columns * sizeof(float), cudaMemcpyHostToDevice));
  return 0;
}
