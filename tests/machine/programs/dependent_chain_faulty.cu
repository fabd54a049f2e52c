// Programmatic launches in a row, of which the middle one lets the next go before its own wait: the last one may begin while the
// first one still runs, and reads too early what that writes.
#include "require.cuh"

__global__ void produce(int* data) { data[threadIdx.x] = 9; }  // @other

__global__ void clear(int* scratch) {
#if __CUDA_ARCH__ >= 900
  cudaTriggerProgrammaticLaunchCompletion();
  cudaGridDependencySynchronize();
#endif
  scratch[threadIdx.x] = 0;
}

__global__ void consume(const int* data, const int* scratch, int* out) {
  const int value = data[threadIdx.x];  // @finding
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
