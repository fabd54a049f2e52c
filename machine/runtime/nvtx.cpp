// The memory part of NVTX. NVTX is header-only and passes by the runtime: it loads the library that
// NVTX_INJECTION64_PATH names, here this one, and lets it fill a table of functions. Layouts and slot numbers are
// those of nvtx3/nvToolsExtMem.h and nvToolsExtMemCudaRt.h.
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "memory/address_space.hpp"
#include "observers/checks.hpp"
#include "runtime/background.hpp"
#include "runtime/schedule.hpp"
#include "runtime/session.hpp"

namespace {

using namespace machine::runtime;
using machine::checks::Checks;

constexpr std::uint16_t kMemoryModule = 1;
constexpr std::uint32_t kVirtualAddress = 1;
constexpr std::uint32_t kAsciiText = 1;

enum Callback : std::size_t {
  heap_register = 0,
  heap_unregister = 1,
  heap_reset = 2,
  regions_register = 3,
  regions_resize = 4,
  regions_unregister = 5,
  regions_name = 6,
  mark_initialized = 16,
};

struct Segment {
  std::size_t id;
  std::size_t count;
  std::intptr_t* functions;
};

struct ModuleInfo {
  std::uint16_t nvtx_version;
  std::uint16_t size;
  std::uint16_t module;
  std::uint16_t compatibility;
  std::size_t segment_count;
  Segment* segments;
};

struct MemoryRange {
  std::size_t size;
  const void* pointer;
};

struct HeapDescription {
  std::uint16_t compatibility, size;
  std::uint32_t reserved, usage, type;
  std::size_t detail_size;
  const MemoryRange* detail;
  std::uint32_t category, message_type;
  const char* message;
};

struct RegisterBatch {
  std::uint16_t compatibility, size;
  std::uint32_t type;
  void* heap;
  std::size_t count, element_size;
  const char* elements;
  void** handles;
};

struct RangeBatch {  // resizing, marking
  std::uint16_t compatibility, size;
  std::uint32_t type;
  std::size_t count, element_size;
  const char* elements;
};

struct ReferenceBatch {
  std::uint16_t compatibility, size;
  std::uint32_t reference_type;
  std::size_t count, element_size;
  const char* elements;
};

struct RegionName {
  std::uint32_t reference_type, name_type;
  const void* region;
  const char* name;
};

struct NameBatch {
  std::uint16_t compatibility, size;
  std::uint32_t reserved;
  std::size_t count, element_size;
  const char* elements;
};

std::uint64_t address_of(const void* pointer) { return reinterpret_cast<std::uint64_t>(pointer); }

template <class Element, class Batch, class F>
void each(const Batch& batch, F f) {
  const std::size_t step = batch.element_size ? batch.element_size : sizeof(Element);
  for (std::size_t i = 0; i < batch.count; ++i) f(i, *reinterpret_cast<const Element*>(batch.elements + i * step));
}

// What is registered holds for the work submitted after the call, so what was submitted before it runs first.
void change(std::function<void(Checks&)> change) {
  start();
  if (!observer()) return;
  InsideCall inside;
  Lock lock(state_mutex());
  schedule().settle(lock);
  host_access_operation();
  notify([change](machine::Observer& checks) { change(static_cast<Checks&>(checks)); });
}

std::map<std::uint64_t, std::size_t>& heaps() {
  static auto* const only = new std::map<std::uint64_t, std::size_t>;
  return *only;
}

// Handles are the addresses themselves: a region or heap is known by where it begins.
void* on_heap_register(void*, const HeapDescription* heap) {
  if (!heap || heap->type != kVirtualAddress || !heap->detail) return nullptr;
  const MemoryRange range = *heap->detail;
  const std::string name = heap->message_type == kAsciiText && heap->message ? heap->message : "";
  change([=](Checks& checks) {
    heaps()[address_of(range.pointer)] = range.size;
    checks.heap_registered(address_of(range.pointer), range.size);
    if (!name.empty()) checks.named(address_of(range.pointer), name);
  });
  return const_cast<void*>(range.pointer);
}

void on_heap_unregister(void*, void* heap) {
  change([=](Checks& checks) {
    heaps().erase(address_of(heap));
    checks.heap_unregistered(address_of(heap));
  });
}

// The heap stays, its regions go; the null handle means every heap.
void on_heap_reset(void*, void* heap) {
  change([=](Checks& checks) {
    for (const auto& [base, size] : heaps())
      if (!heap || base == address_of(heap)) {
        checks.heap_unregistered(base);
        checks.heap_registered(base, size);
      }
  });
}

void on_regions_register(void*, const RegisterBatch* batch) {
  if (!batch || batch->type != kVirtualAddress) return;
  each<MemoryRange>(*batch, [&](std::size_t i, const MemoryRange& region) {
    if (batch->handles) batch->handles[i] = const_cast<void*>(region.pointer);
    const MemoryRange range = region;
    change([=](Checks& checks) { checks.region_registered(address_of(range.pointer), range.size); });
  });
}

void on_regions_resize(void*, const RangeBatch* batch) {
  if (!batch || batch->type != kVirtualAddress) return;
  each<MemoryRange>(*batch, [&](std::size_t, const MemoryRange& region) {
    const MemoryRange range = region;
    change([=](Checks& checks) {
      checks.region_unregistered(address_of(range.pointer));
      checks.region_registered(address_of(range.pointer), range.size);
    });
  });
}

void on_regions_unregister(void*, const ReferenceBatch* batch) {
  if (!batch) return;
  each<const void*>(*batch, [&](std::size_t, const void* region) {
    change([=](Checks& checks) { checks.region_unregistered(address_of(region)); });
  });
}

void on_regions_name(void*, const NameBatch* batch) {
  if (!batch) return;
  each<RegionName>(*batch, [&](std::size_t, const RegionName& name) {
    if (name.name_type != kAsciiText || !name.name) return;
    const std::string text = name.name;
    const auto base = address_of(name.region);
    change([=](Checks& checks) { checks.named(base, text); });
  });
}

void on_mark_initialized(void*, void*, std::uint8_t, const RangeBatch* batch) {
  if (!batch || batch->type != kVirtualAddress) return;
  each<MemoryRange>(*batch, [&](std::size_t, const MemoryRange& region) {
    const MemoryRange range = region;
    change([=](Checks& checks) {
      checks.host_access(host_access_operation(), machine::AccessKind::store, address_of(range.pointer), range.size);
    });
  });
}

}  // namespace

extern "C" {

// The core of NVTX (ranges, marks, names) has nothing to report here; success keeps the library loaded.
int InitializeInjectionNvtx2(void*) { return 1; }

int InitializeInjectionNvtxExtension(ModuleInfo* info) {
  if (info->module != kMemoryModule || info->segment_count == 0) return 0;
  const Segment& segment = info->segments[0];
  auto attach = [&](Callback slot, auto function) {
    if (slot < segment.count) segment.functions[slot] = reinterpret_cast<std::intptr_t>(function);
  };
  attach(heap_register, on_heap_register);
  attach(heap_unregister, on_heap_unregister);
  attach(heap_reset, on_heap_reset);
  attach(regions_register, on_regions_register);
  attach(regions_resize, on_regions_resize);
  attach(regions_unregister, on_regions_unregister);
  attach(regions_name, on_regions_name);
  attach(mark_initialized, on_mark_initialized);
  return 1;
}
}
