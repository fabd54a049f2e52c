// The device's heap: malloc, free, and the aligned malloc of `new`. The launch is one chunk, so that lanes ask in one
// order.
#include <new>

#include "exec/fragments.hpp"
#include "exec/lanes.hpp"
#include "exec/undefined.hpp"
#include "isa/families.hpp"
#include "memory/device_heap.hpp"

namespace machine {
namespace {

// Two words of a call's area, as it has them.
std::uint64_t wide_argument(const Warp& w, Slot area, unsigned lane) {
  return w.at<const std::uint32_t>(area)[lane] | std::uint64_t{w.at<const std::uint32_t>(area)[kWarp + lane]} << 32;
}
constexpr Slot kNextWord = 4 * kWarp;

void require_area_defined(const Inst& i, Warp& w, Slot area, Mask lanes, UndefinedUse use) {
  if (!w.follows) [[likely]]
    return;
  require_defined(i, w, area, lanes, use);
  require_defined(i, w, area + kNextWord, lanes, use);
}

// slots: bytes, alignment or 0, result
const Inst* allocate(const Inst& i, Warp& w, Mask mask) {
  const Mask lanes = mask & w.active;
  if (lanes == 0) return &i + 1;
  const Slot bytes = i.slots[0], align = i.slots[1], result = i.slots[2];
  require_area_defined(i, w, bytes, lanes, UndefinedUse::control);
  for_lanes(lanes, [&](unsigned l) {
    const std::uint64_t wanted = align != 0 ? wide_argument(w, align, l) : 16;
    const Object* object = nullptr;
    try {
      if (std::has_single_bit(wanted) && wanted <= 1 << 20)
        object = DeviceHeap::instance().allocate(wide_argument(w, bytes, l), static_cast<std::uint32_t>(wanted),
                                                 w.worker->request->operation);
    } catch (const std::bad_alloc&) {
      abort_launch(w, i, LaunchStatus::unsupported, "more allocations of kernels than the CPU device has addresses for",
                   Mask{1} << l);
    }
    const std::uint64_t at = object != nullptr ? object->base : 0;
    w.at<std::uint32_t>(result)[l] = static_cast<std::uint32_t>(at);
    w.at<std::uint32_t>(result)[kWarp + l] = static_cast<std::uint32_t>(at >> 32);
  });
  if (w.worker->status != LaunchStatus::ok) return nullptr;
  if (w.follows) [[unlikely]]
    set_defined(*w.frame, result, lanes), set_defined(*w.frame, result + kNextWord, lanes);
  ++w.worker->memory_changes;
  return &i + 1;
}

void refuse_free(const Inst& i, Warp& w, Fault fault, std::string_view what, std::uint64_t address, unsigned lane) {
  if (w.observer == nullptr) return;
  w.address()[lane] = address;
  FaultEvent e;
  e.fault = fault;
  e.lanes = Mask{1} << lane;
  e.address = w.address();
  e.detail = what;
  w.observer->fault(w.point(i, e.lanes), e);
}

// slots: address
const Inst* give_back(const Inst& i, Warp& w, Mask mask) {
  const Mask lanes = mask & w.active;
  if (lanes == 0) return &i + 1;
  require_area_defined(i, w, i.slots[0], lanes, UndefinedUse::address);
  DeviceHeap& heap = DeviceHeap::instance();
  for_lanes(lanes, [&](unsigned l) {
    const std::uint64_t address = wide_argument(w, i.slots[0], l);
    if (address == 0) return;
    switch (heap.standing(address)) {
      case DeviceHeap::Standing::live:
        if (w.observer != nullptr)
          w.observer->heap_freed(w.point(i, Mask{1} << l), *AddressSpace::instance().heap_object(address));
        heap.release(address, w.worker->request->operation);
        break;
      case DeviceHeap::Standing::freed:
        return refuse_free(i, w, Fault::double_free, "the memory has been freed before", address, l);
      case DeviceHeap::Standing::inside:
        return refuse_free(i, w, Fault::invalid_free, "the address is not where the allocation begins", address, l);
      case DeviceHeap::Standing::foreign:
        return refuse_free(i, w, Fault::invalid_free, "the memory is not of malloc() or new in a kernel", address, l);
    }
  });
  ++w.worker->memory_changes;
  return &i + 1;
}

}  // namespace

bool decode_heap_call(Decoder& d, std::string_view name, const std::vector<Operand>& arguments,
                      const std::vector<Operand>& results) {
  const bool aligned = name == "__cuda_syscall_aligned_malloc" || name == "__nv_aligned_device_malloc";
  if (name == "malloc" || aligned) {
    if (arguments.size() != (aligned ? 2u : 1u) || results.size() != 1)
      d.fail(std::string(name) + " takes another number of values");
    const Slot* s = d.keep_slots(
        {area_of(d, arguments[0], 8), aligned ? area_of(d, arguments[1], 8) : 0, area_of(d, results[0], 8)});
    d.emit(allocate).slots = s;
  } else if (name == "free") {
    if (arguments.size() != 1 || !results.empty()) d.fail("free takes one address");
    const Slot* s = d.keep_slots({area_of(d, arguments[0], 8)});
    d.emit(give_back).slots = s;
  } else {
    return false;
  }
  d.program.uses_heap = true;
  d.ends_block();
  return true;
}

}  // namespace machine
