// A table in constant memory is replaced between two kernels that read it, ordered by events and by the host.
#include "require.cuh"

__constant__ int table[32];

__global__ void look_up(int* out) { out[threadIdx.x] = table[threadIdx.x]; }

int main() {
  int *out, *next, host[32];
  cudaStream_t copying, computing;
  cudaEvent_t read, written;
  REQUIRE(cudaStreamCreate(&copying));
  REQUIRE(cudaStreamCreateWithFlags(&computing, cudaStreamNonBlocking));
  REQUIRE(cudaEventCreate(&read));
  REQUIRE(cudaEventCreate(&written));
  REQUIRE(cudaMalloc(&out, 32 * sizeof(int)));
  REQUIRE(cudaMallocHost(&next, 32 * sizeof(int)));
  for (int i = 0; i < 32; ++i) next[i] = host[i] = i;
  REQUIRE(cudaMemcpyToSymbol(table, host, sizeof host));
  look_up<<<1, 32, 0, computing>>>(out);
  REQUIRE(cudaEventRecord(read, computing));
  REQUIRE(cudaStreamWaitEvent(copying, read, 0));
  REQUIRE(cudaMemcpyToSymbolAsync(table, next, 32 * sizeof(int), 0, cudaMemcpyHostToDevice, copying));
  REQUIRE(cudaEventRecord(written, copying));
  REQUIRE(cudaStreamWaitEvent(computing, written, 0));
  look_up<<<1, 32, 0, computing>>>(out);
  REQUIRE(cudaStreamSynchronize(computing));
  for (int& x : host) x = 7;
  REQUIRE(cudaMemcpyToSymbol(table, host, sizeof host));
  look_up<<<1, 32, 0, computing>>>(out);
  REQUIRE(cudaStreamSynchronize(computing));
  REQUIRE(cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost));
  return host[5] == 7 ? 0 : 4;
}
