// A kernel fills all slices of a volume, and the host copies the whole volume.
#include "require.cuh"

__global__ void fill(char* volume, size_t pitch) {
  const size_t slice = blockIdx.x;
  volume[slice * 4 * pitch + threadIdx.x / 16 * pitch + threadIdx.x % 16] = 1;
}

int main() {
  cudaPitchedPtr volume;
  static char host[3 * 4 * 16];
  REQUIRE(cudaMalloc3D(&volume, make_cudaExtent(16, 4, 3)));
  fill<<<3, 64>>>(static_cast<char*>(volume.ptr), volume.pitch);
  cudaMemcpy3DParms copy{};
  copy.srcPtr = volume;
  copy.dstPtr = make_cudaPitchedPtr(host, 16, 16, 4);
  copy.extent = make_cudaExtent(16, 4, 3);
  copy.kind = cudaMemcpyDeviceToHost;
  REQUIRE(cudaMemcpy3D(&copy));
  return host[64] == 1 ? 0 : 4;
}
