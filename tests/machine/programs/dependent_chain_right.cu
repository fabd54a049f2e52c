// Programmatic launches in a row, each of which waits before it lets the next one go: when the last one begins, all before the
// middle one has ended, and the last one may touch it without a wait of its own.
#include "require.cuh"

__global__ void produce(int* data) { data[threadIdx.x] = 9; }

__global__ void clear(int* scratch) {
#if __CUDA_ARCH__ >= 900
  cudaGridDependencySynchronize();
  cudaTriggerProgrammaticLaunchCompletion();
#endif
  scratch[threadIdx.x] = 0;
}

__global__ void consume(const int* data, const int* scratch, int* out) {
  const int value = data[threadIdx.x];
#if __CUDA_ARCH__ >= 900
  cudaGridDependencySynchronize();
#endif
  out[threadIdx.x] = value + scratch[threadIdx.x];
}

int main() {
  cudaStream_t stream;
  REQUIRE(cudaStreamCreate(&stream));
  int *data, *scratch, *out, host[64];
  for (int** each : {&data, &scratch, &out}) REQUIRE(cudaMalloc(each, sizeof host));
  cudaLaunchAttribute overlap;
  overlap.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  overlap.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(1);
  config.blockDim = dim3(64);
  config.stream = stream;
  config.attrs = &overlap;
  config.numAttrs = 1;
  const int *input = data, *zeros = scratch;
  for (int round = 0; round < 2; ++round) {
    REQUIRE(cudaLaunchKernelEx(&config, clear, out));
    produce<<<1, 64, 0, stream>>>(data);
    REQUIRE(cudaLaunchKernelEx(&config, clear, scratch));
    REQUIRE(cudaLaunchKernelEx(&config, consume, input, zeros, out));
  }
  REQUIRE(cudaStreamSynchronize(stream));
  REQUIRE(cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost));
  return host[0] == 9 && host[63] == 9 ? 0 : 4;
}
