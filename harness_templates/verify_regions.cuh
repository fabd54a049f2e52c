// Tells a memory checker which bytes of an allocation may be touched, through the NVTX memory API: the
// allocation is a heap, its live runs are regions, and everything else in it counts as unallocated.
// Without a tool these calls do nothing.
#pragma once

#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtMem.h>

#include <vector>

#include "verify_image.hpp"

namespace verify {

class Regions {
  public:
    // base: what cudaMalloc returned, `allocated` bytes; the runs are relative to `first`.
    Regions(void* base, std::uint64_t allocated, void* first, const std::vector<ByteRun>& runs) {
        whole_ = {static_cast<std::size_t>(allocated), base};
        nvtxMemHeapDesc_t heap = {};
        heap.extCompatID = NVTX_EXT_COMPATID_MEM;
        heap.structSize = sizeof heap;
        heap.usage = NVTX_MEM_HEAP_USAGE_TYPE_SUB_ALLOCATOR;
        heap.type = NVTX_MEM_TYPE_VIRTUAL_ADDRESS;
        heap.typeSpecificDescSize = sizeof whole_;
        heap.typeSpecificDesc = &whole_;
        heap_ = nvtxMemHeapRegister(domain(), &heap);
        std::vector<nvtxMemVirtualRangeDesc_t> ranges;
        for (const ByteRun& run : runs)
            ranges.push_back({static_cast<std::size_t>(run.length), static_cast<char*>(first) + run.offset});
        add(ranges);
    }

    // Opens the whole allocation again, so that the host can read it back.
    void lift() {
        nvtxMemHeapReset(domain(), heap_);
        add({whole_});
    }

  private:
    static nvtxDomainHandle_t domain() {
        static const nvtxDomainHandle_t handle = nvtxDomainCreateA("verify");
        return handle;
    }

    void add(const std::vector<nvtxMemVirtualRangeDesc_t>& ranges) {
        if (ranges.empty()) return;
        std::vector<nvtxMemRegionHandle_t> handles(ranges.size());
        nvtxMemRegionsRegisterBatch_t batch = {};
        batch.extCompatID = NVTX_EXT_COMPATID_MEM;
        batch.structSize = sizeof batch;
        batch.regionType = NVTX_MEM_TYPE_VIRTUAL_ADDRESS;
        batch.heap = heap_;
        batch.regionCount = ranges.size();
        batch.regionDescElementSize = sizeof(nvtxMemVirtualRangeDesc_t);
        batch.regionDescElements = ranges.data();
        batch.regionHandleElementsOut = handles.data();
        nvtxMemRegionsRegister(domain(), &batch);
    }

    nvtxMemVirtualRangeDesc_t whole_ = {};
    nvtxMemHeapHandle_t heap_ = nullptr;
};

}  // namespace verify
