// CUDA arrays are not provided: the call is named and the process ends with exit code 3.
#include "expect.cuh"

int main() {
  std::printf("printed before\n");
  cudaArray_t array;
  cudaChannelFormatDesc format = cudaCreateChannelDesc(32, 0, 0, 0, cudaChannelFormatKindFloat);
  cudaMallocArray(&array, &format, 16, 16);
  std::printf("never printed\n");
  return finish();
}
