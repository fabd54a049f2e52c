#include "exec/memory_access.hpp"

#include <algorithm>

#include "exec/mbarrier.hpp"
#include "exec/undo.hpp"

namespace machine {
namespace {

// Lanes whose bytes all lie in memory that may be touched without harm to the host.
Mask owned(const Access& a, Mask lanes) {
  Mask good = 0;
  for_lanes(lanes, [&](unsigned l) {
    const auto first = a.address[l], last = first + a.width - 1;
    if (in_global_arena(first) && in_global_arena(last) && granule_live(first)) good |= Mask{1} << l;
  });
  if (good == lanes) return good;
  const auto& space = AddressSpace::instance();
  for_lanes(lanes & ~good, [&](unsigned l) {
    if (space.touchable(a.address[l], a.width)) good |= Mask{1} << l;
  });
  return good;
}

}  // namespace

bool AddressRange::live() const {
  if ((last - first) >> kGranuleShift > 8) return false;
  bool all = granule_live(last);
  for (auto at = first; at < last; at += std::uint64_t{1} << kGranuleShift) all &= granule_live(at);
  return all;
}

AddressRange range_of(const std::uint64_t* address, std::uint32_t width, Mask lanes) {
  std::uint64_t low, high, bits;
#if MACHINE_AVX512
  __m512i least = _mm512_set1_epi64(-1), most = _mm512_setzero_si512(), any = most;
  for (unsigned g = 0; g < 4; ++g) {
    const auto in = static_cast<__mmask8>(lanes >> (8 * g));
    const __m512i v = _mm512_loadu_si512(address + 8 * g);
    least = _mm512_mask_min_epu64(least, in, least, v);
    most = _mm512_mask_max_epu64(most, in, most, v);
    any = _mm512_mask_or_epi64(any, in, any, v);
  }
  low = _mm512_reduce_min_epu64(least), high = _mm512_reduce_max_epu64(most),
  bits = static_cast<std::uint64_t>(_mm512_reduce_or_epi64(any));
#else
  low = ~std::uint64_t{0}, high = bits = 0;
  for_lanes(lanes, [&](unsigned l) {
    low = std::min(low, address[l]), high = std::max(high, address[l]), bits |= address[l];
  });
#endif
  return {low, high + width - 1, bits};
}

void address_fault(const Inst& i, Warp& w, const Access& a, Mask lanes, Fault fault) {
  if (w.observer != nullptr) {
    FaultEvent event;
    event.fault = fault;
    event.lanes = lanes;
    event.address = a.address;
    event.space = a.space;
    event.width = a.width;
    w.observer->fault(w.point(i, a.lanes), event);
    return;
  }
  const unsigned l = static_cast<unsigned>(std::countr_zero(lanes));
  std::uint64_t shown = a.address[l];
  if (a.space == Space::shared) shown -= w.block->info.shared;
  char text[96];
  static constexpr const char* kSpaces[] = {"global", "shared", "local", "parameter", "constant"};
  std::snprintf(text, sizeof text, "%s %s address 0x%llx, %u bytes",
                fault == Fault::misaligned_address ? "misaligned" : "illegal", kSpaces[static_cast<int>(a.space)],
                static_cast<unsigned long long>(shown), a.width);
  abort_launch(w, i,
               fault == Fault::misaligned_address ? LaunchStatus::misaligned_address : LaunchStatus::illegal_address,
               text, lanes);
}

Mask admit_lanes(const Inst& i, Warp& w, Access& a) {
  Mask lanes = a.lanes;
  // What is refused is left out; what goes on is an access of its own.
  auto refuse = [&](Mask bad, Fault fault) {
    address_fault(i, w, a, bad, fault);
    lanes &= ~bad;
    if (lanes == 0) return;
    a.lanes = lanes;
    classify(a);
  };
  const std::uint64_t* address = a.address;
  AddressRange range = range_of(address, a.width, lanes);
  // Alignment: widths are powers of two.
  const std::uint64_t low = a.width - 1;
  if ((range.bits & low) != 0) {
    refuse(lanes & mask_of([=](unsigned l) { return (address[l] & low) != 0; }), Fault::misaligned_address);
    if (lanes == 0) return 0;
    range = range_of(address, a.width, lanes);
  }
  // The outer bounds of the space, which keep the host safe.
  if (a.space == Space::shared || a.space == Space::local) {
    const std::uint64_t origin = a.space == Space::shared ? w.block->info.shared : 0;
    const std::uint64_t extent = a.space == Space::shared ? w.block->info.shared_extent : w.local_bytes;
    if (range.first < origin || range.last < range.first || range.last - origin >= extent) {
      const std::uint64_t bytes = a.width;
      refuse(lanes & mask_of([=](unsigned l) { return extent < bytes || address[l] - origin > extent - bytes; }),
             Fault::illegal_address);
      if (lanes == 0) return 0;
    }
    if (w.observer != nullptr) lanes &= w.observer->access(w.point(i, a.lanes), a);
    return lanes;
  }
  // Global: what lies outside the arena altogether is a fault of the machine, the rest is left to the checks.
  Mask outside = 0;
  if (!range.in_arena()) {
    const std::uint64_t bytes = a.width;
    outside = lanes & mask_of([=](unsigned l) {
                return !in_global_arena(address[l]) || !in_global_arena(address[l] + bytes - 1);
              });
  }
  if (outside != 0) {
    const Mask bad = outside & ~owned(a, outside);
    if (bad != 0) {
      refuse(bad, Fault::illegal_address);
      if (lanes == 0) return 0;
    }
  }
  if (w.observer != nullptr) {
    lanes &= w.observer->access(w.point(i, a.lanes), a);
    if (lanes == 0) return 0;
  }
  // What the checks let pass must still be somebody's memory.
  if (outside == 0 && range.live()) [[likely]]
    return lanes;
  const Mask good = owned(a, lanes);
  if (good != lanes) address_fault(i, w, a, lanes & ~good, Fault::illegal_address);
  return good;
}

void before_store(Warp& w, const Access& a, Mask lanes) {
  ++w.worker->memory_changes;
  if (w.worker->undo == nullptr || a.space != Space::global) return;
  Worker& k = *w.worker;
  if (lanes == a.lanes) {
    a.for_each_run([&](std::uint64_t address, std::uint64_t bytes, Mask) { k.undo->save(address, bytes); });
  } else {
    for_lanes(lanes, [&](unsigned l) { k.undo->save(a.address[l], a.width); });
  }
}

void polled(Warp& w, const std::uint64_t* address, Mask lanes) {
  Worker& k = *w.worker;
  w.polled = true;
  const std::uint64_t first = address[std::countr_zero(lanes)];
  if (w.polled_at == first && w.polled_after == k.memory_changes) {
    w.budget -= w.budget >> 3;
    w.in_vain = w.diverged;
  }
  w.polled_at = first;
  w.polled_after = k.memory_changes;
  if (k.watch == 0 || k.host_polled) return;
  for_lanes(lanes, [&](unsigned l) {
    const Object* object = AddressSpace::instance().find(address[l]);
    if (object == nullptr) return;
    k.host_polled |= object->kind == ObjectKind::pinned || object->kind == ObjectKind::managed ||
                     object->kind == ObjectKind::registered;
  });
}

namespace {

Mask one_space(const Inst& i, Warp& w, const MemoryOp& op, Access& a) {
  const bool writes = op.kind != AccessKind::load;
  a.undefined = w.worker->undefined.get();
  a.merge = op.merge;
  if (writes && w.observer != nullptr)
    for (unsigned c = 0; c < op.components; ++c)
      a.data[c] = {w.at<const std::byte>(op.registers[c]), op.register_width};
  if (op.kind == AccessKind::atomic)
    a.data[1] = {w.at<const std::byte>(op.registers[1]), op.register_width};  // of a compare-and-swap
  const Mask lanes = admit(i, w, a);
  if (lanes == 0) return 0;
  const std::uint64_t bytes = std::uint64_t{op.width} * static_cast<unsigned>(std::popcount(lanes));
  if (writes) {
    w.worker->bytes_stored += bytes;
    if (a.space != Space::local) before_store(w, a, lanes);
    if (a.space == Space::shared && !w.block->mbarriers.empty()) [[unlikely]]
      check_overwritten(w, i, lanes, a.address, a.width);
  } else {
    w.worker->bytes_loaded += bytes;
    if (op.order != Order::weak) polled(w, a.address, lanes);
  }
  if (op.order != Order::weak) talked(w);
  const Shape shape = lanes == a.lanes ? a.shape : Shape::scattered;
  (a.space == Space::local ? op.transfer_local : op.transfer)(op, w, a.address, lanes, shape);
  return lanes;
}

// Generic addresses that do not all lie in global memory: by the windows that they lie in.
Mask by_window(const Inst& i, Warp& w, const MemoryOp& op, const Access& whole) {
  std::uint64_t* address = w.address();
  const Mask shared = whole.lanes & mask_of([=](unsigned l) { return address[l] - kSharedWindow < kWindowBytes; });
  const Mask local = whole.lanes & mask_of([=](unsigned l) { return address[l] - kLocalWindow < kWindowBytes; });
  Mask done = 0;
  auto part = [&](Space space, Mask lanes, std::uint64_t shift) {
    if (lanes == 0) return;
    for_lanes(lanes, [&](unsigned l) { address[l] += shift; });
    Access a = whole;
    a.space = space;
    a.lanes = lanes;
    classify(a);
    done |= one_space(i, w, op, a);
  };
  part(Space::global, whole.lanes & ~(shared | local), 0);
  part(Space::shared, shared, w.block->info.shared - kSharedWindow);
  part(Space::local, local, 0 - kLocalWindow);
  return done;
}

}  // namespace

Mask run_memory(const Inst& i, Warp& w, const MemoryOp& op, Mask mask) {
  static constexpr Space kSpaces[] = {Space::global,   Space::shared, Space::local,
                                      Space::constant, Space::param,  Space::global};
  Access a;
  a.kind = op.kind;
  a.space = kSpaces[static_cast<std::size_t>(op.via)];
  a.order = op.order;
  a.scope = op.scope;
  a.cache = op.cache;
  a.generic = op.via == Via::generic;
  a.components = op.components;
  a.width = op.width;
  a.lanes = mask;
  if (op.via == Via::shared) form(w, shared_source(w, i.a, op.base_width, i.imm), w.address(), a);
  else form(w, {i.a, op.base_width, i.imm}, w.address(), a);
  if (op.via == Via::generic) {
    const std::uint64_t first = a.address[a.first_lane()],
                        bytes = a.shape == Shape::contiguous ? std::uint64_t{a.width} * kWarp : a.width;
    const bool global = a.shape != Shape::scattered && in_global_arena(first) && in_global_arena(first + bytes - 1);
    if (!global) return by_window(i, w, op, a);
  }
  return one_space(i, w, op, a);
}

}  // namespace machine
