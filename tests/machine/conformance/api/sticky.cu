// After a kernel has failed: which calls still succeed, and what the others say. Argument: how it failed.
#include <cstring>

#include "say.cuh"

__global__ void fails(int how, int* p) {
  if (how == 0) *reinterpret_cast<volatile int*>(16) = 1;
  if (how == 1) __trap();
  if (how == 2) *reinterpret_cast<volatile int*>(reinterpret_cast<char*>(p) + 1) = 1;
}
__global__ void plain(int* p) { if (p) *p = 1; }

int main(int, char** arguments) {
  int *p, host = 0, number = 0;
  void* q = nullptr;
  size_t a = 0, b = 0;
  cudaStream_t stream, other;
  cudaEvent_t event, second;
  SAY(cudaMalloc(&p, 64));
  SAY(cudaStreamCreate(&stream));
  SAY(cudaEventCreate(&event));
  const int how = arguments[1] == nullptr ? 0 : arguments[1][0] - '0';
  fails<<<1, 1>>>(how, p);
  SAY(cudaDeviceSynchronize());
  SAY(cudaGetLastError());
  SAY(cudaPeekAtLastError());
  SAY(cudaGetDevice(&number));
  SAY(cudaGetDeviceCount(&number));
  SAY(cudaSetDevice(0));
  SAY(cudaSetDevice(7));
  cudaDeviceProp properties;
  SAY(cudaGetDeviceProperties(&properties, 0));
  SAY(cudaDeviceGetAttribute(&number, cudaDevAttrWarpSize, 0));
  SAY(cudaDriverGetVersion(&number));
  SAY(cudaRuntimeGetVersion(&number));
  SAY(cudaMemGetInfo(&a, &b));
  SAY(cudaMalloc(&q, 16));
  SAY(cudaMallocHost(&q, 16));
  SAY(cudaFree(nullptr));
  SAY(cudaMemcpy(&host, p, 4, cudaMemcpyDeviceToHost));
  SAY(cudaMemset(p, 0, 4));
  cudaPointerAttributes where;
  SAY(cudaPointerGetAttributes(&where, p));
  SAY(cudaStreamCreate(&other));
  SAY(cudaStreamQuery(stream));
  SAY(cudaStreamSynchronize(stream));
  SAY(cudaEventCreate(&second));
  SAY(cudaEventRecord(event, stream));
  SAY(cudaEventQuery(event));
  SAY(cudaEventSynchronize(event));
  cudaFuncAttributes attributes;
  SAY(cudaFuncGetAttributes(&attributes, plain));
  SAY(cudaFuncSetAttribute(plain, cudaFuncAttributeMaxDynamicSharedMemorySize, 1024));
  SAY(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&number, plain, 32, 0));
  SAY(cudaDeviceGetLimit(&a, cudaLimitStackSize));
  SAY(cudaDeviceSetLimit(cudaLimitStackSize, 2048));
  cudaFuncCache cache;
  SAY(cudaDeviceGetCacheConfig(&cache));
  int low, high;
  SAY(cudaDeviceGetStreamPriorityRange(&low, &high));
  unsigned flags;
  SAY(cudaGetDeviceFlags(&flags));
  char name[64];
  SAY(cudaDeviceGetPCIBusId(name, sizeof name, 0));
  SAY(cudaDeviceCanAccessPeer(&number, 0, 0));
  cudaMemPool_t pool;
  SAY(cudaDeviceGetDefaultMemPool(&pool, 0));
  cudaGraph_t graph;
  SAY(cudaGraphCreate(&graph, 0));
  SAY(cudaGetSymbolAddress(&q, &host));
  plain<<<1, 1>>>(nullptr);
  SAY(cudaGetLastError());
  SAY(cudaDeviceSynchronize());
  SAY(cudaEventDestroy(event));
  SAY(cudaStreamDestroy(stream));
  SAY(cudaFree(p));
  return 0;
}
