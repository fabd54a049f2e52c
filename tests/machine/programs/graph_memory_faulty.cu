// A workspace kept from a capture that allocates and frees it: it is the graph's, and not there between its runs.
#include "require.cuh"

__global__ void fill(int* data) { data[threadIdx.x] = threadIdx.x; }
__global__ void use(const int* data, int* out) {
  out[threadIdx.x] = data[threadIdx.x];  // @finding
}

int main() {
  cudaStream_t stream;
  REQUIRE(cudaStreamCreate(&stream));
  int *out, *kept;
  REQUIRE(cudaMalloc(&out, 64 * sizeof(int)));
  cudaGraph_t graph;
  cudaGraphExec_t run;
  REQUIRE(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
  REQUIRE(cudaMallocAsync(&kept, 64 * sizeof(int), stream));
  fill<<<1, 64, 0, stream>>>(kept);
  REQUIRE(cudaFreeAsync(kept, stream));
  REQUIRE(cudaStreamEndCapture(stream, &graph));
  REQUIRE(cudaGraphInstantiate(&run, graph, 0));
  REQUIRE(cudaGraphLaunch(run, stream));
  use<<<1, 64, 0, stream>>>(kept, out);
  cudaDeviceSynchronize();
  return 0;
}
