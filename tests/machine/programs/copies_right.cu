// Copies that do not overlap though they lie in one array or matrix, one of a range to itself, and two streams that copy side
// by side, or to the same place one after the other.
#include "require.cuh"

__global__ void fill(char* matrix) { matrix[blockIdx.x * blockDim.x + threadIdx.x] = 1; }

int main() {
  constexpr size_t pitch = 64 * sizeof(float), width = 16 * sizeof(float);
  char* matrix;
  REQUIRE(cudaMalloc(&matrix, 32 * pitch));
  fill<<<32, pitch>>>(matrix);
  REQUIRE(cudaMemcpy(matrix + 4 * pitch, matrix, 4 * pitch, cudaMemcpyDeviceToDevice));
  REQUIRE(cudaMemcpy(matrix, matrix, 4 * pitch, cudaMemcpyDeviceToDevice));
  REQUIRE(cudaMemcpy2D(matrix + width, pitch, matrix, pitch, width, 32, cudaMemcpyDeviceToDevice));
  REQUIRE(cudaMemcpy2D(matrix + 8 * pitch, pitch, matrix, pitch, width, 8, cudaMemcpyDeviceToDevice));
  cudaStream_t one, other;
  cudaEvent_t done;
  REQUIRE(cudaStreamCreateWithFlags(&one, cudaStreamNonBlocking));
  REQUIRE(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
  REQUIRE(cudaEventCreate(&done));
  REQUIRE(cudaDeviceSynchronize());
  REQUIRE(cudaMemcpyAsync(matrix + 16 * pitch, matrix, pitch, cudaMemcpyDeviceToDevice, one));
  REQUIRE(cudaMemcpyAsync(matrix + 17 * pitch, matrix, pitch, cudaMemcpyDeviceToDevice, other));
  REQUIRE(cudaEventRecord(done, one));
  REQUIRE(cudaStreamWaitEvent(other, done, 0));
  REQUIRE(cudaMemcpyAsync(matrix + 16 * pitch, matrix + 2 * pitch, pitch, cudaMemcpyDeviceToDevice, other));
  REQUIRE(cudaDeviceSynchronize());
  return 0;
}
