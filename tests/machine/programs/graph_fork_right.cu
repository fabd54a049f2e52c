// Two kernels of a graph that add to the same numbers, one behind the other.
#include "require.cuh"

__global__ void add(int* numbers) {
  numbers[threadIdx.x] += 1;
}

int main() {
  int* numbers;
  cudaStream_t one, other;
  cudaEvent_t forked, joined;
  cudaGraph_t graph;
  cudaGraphExec_t instance;
  REQUIRE(cudaMalloc(&numbers, 32 * sizeof(int)));
  REQUIRE(cudaMemset(numbers, 0, 32 * sizeof(int)));
  REQUIRE(cudaStreamCreate(&one));
  REQUIRE(cudaStreamCreate(&other));
  REQUIRE(cudaEventCreate(&forked));
  REQUIRE(cudaEventCreate(&joined));
  REQUIRE(cudaStreamBeginCapture(one, cudaStreamCaptureModeGlobal));
  REQUIRE(cudaEventRecord(forked, one));
  REQUIRE(cudaStreamWaitEvent(other, forked, 0));
  add<<<1, 32, 0, other>>>(numbers);
  REQUIRE(cudaEventRecord(joined, other));
  REQUIRE(cudaStreamWaitEvent(one, joined, 0));
  add<<<1, 32, 0, one>>>(numbers);
  REQUIRE(cudaStreamEndCapture(one, &graph));
  REQUIRE(cudaGraphInstantiate(&instance, graph, 0));
  REQUIRE(cudaGraphLaunch(instance, one));
  REQUIRE(cudaDeviceSynchronize());
  return 0;
}
