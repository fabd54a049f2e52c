// The loop reads one position past the live band and a select discards the value: the output is right, the
// byte was touched. Only a registered live region shows it.
#include "require.cuh"

#include <nvtx3/nvToolsExtMem.h>

__global__ void live_sum(const float* cache, float* out, int length) {
  int i = threadIdx.x;
  float value = cache[i];  // @finding
  out[i] = i < length ? value : 0.0f;
}

int main() {
  constexpr int capacity = 64, length = 63;
  float *cache, *out, host[capacity];
  for (float& value : host) value = 1.0f;
  REQUIRE(cudaMalloc(&cache, capacity * sizeof(float)));
  REQUIRE(cudaMalloc(&out, capacity * sizeof(float)));
  REQUIRE(cudaMemcpy(cache, host, sizeof host, cudaMemcpyHostToDevice));

  nvtxDomainHandle_t domain = nvtxDomainCreateA("dead_slot");
  nvtxMemVirtualRangeDesc_t heap_range = {capacity * sizeof(float), cache};
  nvtxMemHeapDesc_t heap = {};
  heap.extCompatID = NVTX_EXT_COMPATID_MEM;
  heap.structSize = sizeof heap;
  heap.usage = NVTX_MEM_HEAP_USAGE_TYPE_SUB_ALLOCATOR;
  heap.type = NVTX_MEM_TYPE_VIRTUAL_ADDRESS;
  heap.typeSpecificDescSize = sizeof heap_range;
  heap.typeSpecificDesc = &heap_range;
  nvtxMemHeapHandle_t heap_handle = nvtxMemHeapRegister(domain, &heap);
  nvtxMemVirtualRangeDesc_t live = {length * sizeof(float), cache};
  nvtxMemRegionsRegisterBatch_t batch = {};
  batch.extCompatID = NVTX_EXT_COMPATID_MEM;
  batch.structSize = sizeof batch;
  batch.heap = heap_handle;
  batch.regionType = NVTX_MEM_TYPE_VIRTUAL_ADDRESS;
  batch.regionCount = 1;
  batch.regionDescElementSize = sizeof live;
  batch.regionDescElements = &live;
  nvtxMemRegionsRegister(domain, &batch);

  live_sum<<<1, capacity>>>(cache, out, length);
  cudaDeviceSynchronize();
  return 0;
}
