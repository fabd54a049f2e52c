// Memory of a graph: allocated and freed in it, run after run; allocated in it and freed by the program; copied to in it.
#include "require.cuh"

__global__ void fill(int* data) { data[threadIdx.x] = threadIdx.x; }
__global__ void add(const int* data, int* out) { out[threadIdx.x] += data[threadIdx.x]; }

int main() {
  cudaStream_t stream;
  REQUIRE(cudaStreamCreate(&stream));
  int *out, *kept, *temporary, host[64] = {};
  REQUIRE(cudaMalloc(&out, sizeof host));
  REQUIRE(cudaMemset(out, 0, sizeof host));
  cudaGraph_t graph;
  cudaGraphExec_t run;
  REQUIRE(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
  REQUIRE(cudaMallocAsync(&temporary, sizeof host, stream));
  REQUIRE(cudaMallocAsync(&kept, sizeof host, stream));
  REQUIRE(cudaMemsetAsync(temporary, 0, sizeof host, stream));
  fill<<<1, 64, 0, stream>>>(temporary);
  REQUIRE(cudaMemcpyAsync(kept, temporary, sizeof host, cudaMemcpyDeviceToDevice, stream));
  REQUIRE(cudaFreeAsync(temporary, stream));
  REQUIRE(cudaStreamEndCapture(stream, &graph));
  REQUIRE(cudaGraphInstantiate(&run, graph, cudaGraphInstantiateFlagAutoFreeOnLaunch));
  for (int round = 0; round < 3; ++round) {
    REQUIRE(cudaGraphLaunch(run, stream));
    add<<<1, 64, 0, stream>>>(kept, out);
    REQUIRE(cudaFreeAsync(kept, stream));
  }
  REQUIRE(cudaStreamSynchronize(stream));
  REQUIRE(cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost));
  REQUIRE(cudaGraphExecDestroy(run));
  REQUIRE(cudaGraphDestroy(graph));
  return host[63] == 189 ? 0 : 4;
}
