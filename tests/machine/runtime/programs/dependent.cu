// A programmatic dependent launch is ordered after the kernel before it only from griddepcontrol.wait on: what it
// reads before is the old value, what it reads after is the new one.
#include "expect.cuh"

__global__ void produce(int* data) {
#if __CUDA_ARCH__ >= 900
  cudaTriggerProgrammaticLaunchCompletion();
#endif
  data[threadIdx.x] += 10;
}

__global__ void consume(const volatile int* data, int* before, int* after) {
  before[threadIdx.x] = data[threadIdx.x];
#if __CUDA_ARCH__ >= 900
  cudaGridDependencySynchronize();
#endif
  after[threadIdx.x] = data[threadIdx.x];
}

__global__ void never_waits(int* out) { out[threadIdx.x] = 1; }

int main() {
  cudaStream_t stream;
  OK(cudaStreamCreate(&stream));
  int *data, *before, *after, *out, host[32];
  for (int** p : {&data, &before, &after, &out}) {
    OK(cudaMalloc(p, sizeof host));
    OK(cudaMemset(*p, 0, sizeof host));
  }
  OK(cudaDeviceSynchronize());
  cudaLaunchAttribute overlap;
  overlap.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  overlap.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(1);
  config.blockDim = dim3(32);
  config.stream = stream;
  config.attrs = &overlap;
  config.numAttrs = 1;
  const volatile int* input = data;

  produce<<<1, 32, 0, stream>>>(data);
  OK(cudaLaunchKernelEx(&config, consume, input, before, after));
  OK(cudaMemcpyAsync(host, before, sizeof host, cudaMemcpyDeviceToHost, stream));
  EXPECT(host[0] == 0 && host[31] == 0);
  OK(cudaMemcpyAsync(host, after, sizeof host, cudaMemcpyDeviceToHost, stream));
  EXPECT(host[0] == 10 && host[31] == 10);

  // What follows a dependent launch follows its predecessor too, also when the launch never waits.
  produce<<<1, 32, 0, stream>>>(data);
  OK(cudaLaunchKernelEx(&config, never_waits, out));
  OK(cudaMemcpyAsync(host, data, sizeof host, cudaMemcpyDeviceToHost, stream));
  EXPECT(host[0] == 20);

  // A chain, and the same captured into a graph.
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  for (int i = 0; i < 5; ++i) OK(cudaLaunchKernelEx(&config, produce, data));
  OK(cudaStreamSynchronize(stream));
  OK(cudaMemcpy(host, data, sizeof host, cudaMemcpyDeviceToHost));
  EXPECT(host[0] == 70);
  OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  produce<<<1, 32, 0, stream>>>(data);
  OK(cudaLaunchKernelEx(&config, consume, input, before, after));
  OK(cudaStreamEndCapture(stream, &graph));
  OK(cudaGraphInstantiate(&exec, graph, 0));
  OK(cudaGraphLaunch(exec, stream));
  OK(cudaStreamSynchronize(stream));
  OK(cudaMemcpy(host, before, sizeof host, cudaMemcpyDeviceToHost));
  EXPECT(host[0] == 70);
  OK(cudaMemcpy(host, after, sizeof host, cudaMemcpyDeviceToHost));
  EXPECT(host[0] == 80);
  return finish();
}
