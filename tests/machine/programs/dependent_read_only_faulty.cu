// A programmatic dependent launch waits for its predecessor, and then reads what that wrote through the read-only cache:
// its data must not change from the start of the kernel on, which lies before the wait.
#include "require.cuh"

__global__ void produce(int* data) {
#if __CUDA_ARCH__ >= 900
  cudaTriggerProgrammaticLaunchCompletion();
#endif
  data[threadIdx.x] = 9;  // @other
}

__global__ void consume(const int* data, int* out) {
#if __CUDA_ARCH__ >= 900
  cudaGridDependencySynchronize();
#endif
  out[threadIdx.x] = __ldg(data + threadIdx.x);  // @finding
}

int main() {
  cudaStream_t stream;
  REQUIRE(cudaStreamCreate(&stream));
  int *data, *out, host[64];
  REQUIRE(cudaMalloc(&data, sizeof host));
  REQUIRE(cudaMalloc(&out, sizeof host));
  REQUIRE(cudaMemsetAsync(data, 0, sizeof host, stream));
  produce<<<1, 64, 0, stream>>>(data);
  cudaLaunchAttribute overlap;
  overlap.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  overlap.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(1);
  config.blockDim = dim3(64);
  config.stream = stream;
  config.attrs = &overlap;
  config.numAttrs = 1;
  const int* input = data;
  REQUIRE(cudaLaunchKernelEx(&config, consume, input, out));
  REQUIRE(cudaStreamSynchronize(stream));
  REQUIRE(cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost));
  return 0;
}
