// Reads a dead row of a live allocation: only the registered live region makes that an error. The value is
// discarded by a select, as a masked kernel would, so no output shows it.
#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtMem.h>

#include "tripwire.cuh"

__global__ void read_a_dead_row(const float* in, float* out, int live, int n) {
    const int i = threadIdx.x;
    if (i < n) {
        const float value = *(volatile const float*)(in + i);  // fault
        out[i] = i < live ? value : 0.0f;
    }
}

static void register_live(const void* base, size_t bytes, size_t live) {
    nvtxDomainHandle_t domain = nvtxDomainCreateA("tripwire");
    nvtxMemVirtualRangeDesc_t whole = {};
    whole.size = bytes;
    whole.ptr = base;
    nvtxMemHeapDesc_t heap = {};
    heap.extCompatID = NVTX_EXT_COMPATID_MEM;
    heap.structSize = sizeof heap;
    heap.usage = NVTX_MEM_HEAP_USAGE_TYPE_SUB_ALLOCATOR;
    heap.type = NVTX_MEM_TYPE_VIRTUAL_ADDRESS;
    heap.typeSpecificDescSize = sizeof whole;
    heap.typeSpecificDesc = &whole;
    nvtxMemVirtualRangeDesc_t region = {};
    region.size = live;
    region.ptr = base;
    nvtxMemRegionsRegisterBatch_t batch = {};
    batch.extCompatID = NVTX_EXT_COMPATID_MEM;
    batch.structSize = sizeof batch;
    batch.regionType = NVTX_MEM_TYPE_VIRTUAL_ADDRESS;
    batch.heap = nvtxMemHeapRegister(domain, &heap);
    batch.regionCount = 1;
    batch.regionDescElementSize = sizeof region;
    batch.regionDescElements = &region;
    nvtxMemRegionsRegister(domain, &batch);
}

static cudaError_t body() {
    constexpr int n = 128, live = 64;
    float *in = nullptr, *out = nullptr;
    cudaMalloc(&in, n * sizeof(float));
    cudaMalloc(&out, n * sizeof(float));
    cudaMemset(in, 0, n * sizeof(float));
    register_live(in, n * sizeof(float), live * sizeof(float));
    read_a_dead_row<<<1, n>>>(in, out, live, n);
    return cudaDeviceSynchronize();
}

int main() { return tripwire(body); }
