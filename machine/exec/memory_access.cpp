#include "memory_access.hpp"

#include <algorithm>

#include "undo.hpp"

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

bool Range::live() const {
  if ((last - first) >> kGranuleShift > 8) return false;
  bool all = granule_live(last);
  for (auto at = first; at < last; at += std::uint64_t{1} << kGranuleShift) all &= granule_live(at);
  return all;
}

Range range_of(const Access& a, Mask lanes) {
  std::uint64_t low = ~std::uint64_t{0}, high = 0;
  for (unsigned l = 0; l < kWarp; ++l) {
    const bool in = lanes >> l & 1;
    low = std::min(low, in ? a.address[l] : ~std::uint64_t{0});
    high = std::max(high, in ? a.address[l] : 0);
  }
  return {low, high + a.width - 1};
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
  std::snprintf(text, sizeof text, "%s %s address 0x%llx, %u bytes", fault == Fault::misaligned_address ? "misaligned" : "illegal",
                kSpaces[static_cast<int>(a.space)], static_cast<unsigned long long>(shown), a.width);
  abort_launch(w, i, fault == Fault::misaligned_address ? LaunchStatus::misaligned_address : LaunchStatus::illegal_address, text, lanes);
}

Mask admit_lanes(const Inst& i, Warp& w, Access& a) {
  Mask lanes = a.lanes;
  // Alignment: widths are powers of two.
  const std::uint64_t low = a.width - 1;
  if (low != 0) {
    if (a.shape != Shape::scattered) {
      if ((a.address[a.first_lane()] & low) != 0) {
        address_fault(i, w, a, lanes, Fault::misaligned_address);
        return 0;
      }
    } else {
      std::uint64_t any = 0;
#pragma GCC ivdep
      for (unsigned l = 0; l < kWarp; ++l) any |= (lanes >> l & 1) ? a.address[l] : 0;
      if ((any & low) != 0) {
        Mask bad = 0;
        for_lanes(lanes, [&](unsigned l) { bad |= Mask{(a.address[l] & low) != 0} << l; });
        address_fault(i, w, a, bad, Fault::misaligned_address);
        lanes &= ~bad;
        if (lanes == 0) return 0;
        a.lanes = lanes;
        classify(a);
      }
    }
  }
  // The outer bounds of the space, which keep the host safe.
  if (a.space == Space::shared || a.space == Space::local) {
    const std::uint64_t origin = a.space == Space::shared ? w.block->info.shared : 0;
    const std::uint64_t extent = a.space == Space::shared ? w.block->info.shared_extent : w.local_bytes;
    Mask outside = 0;
    for (unsigned l = 0; l < kWarp; ++l) outside |= Mask{a.address[l] < origin || a.address[l] - origin + a.width > extent} << l;
    outside &= lanes;
    if (outside != 0) {
      address_fault(i, w, a, outside, Fault::illegal_address);
      lanes &= ~outside;
      if (lanes == 0) return 0;
      a.lanes = lanes;
      classify(a);
    }
    if (w.observer != nullptr) lanes &= w.observer->access(w.point(i, a.lanes), a);
    return lanes;
  }
  // Global: what lies outside the arena altogether is told as a fault of the machine, the rest is judged by the checks.
  Mask outside = 0;
  const Range range = range_of(a, lanes);
  if (!range.inside()) for_lanes(lanes, [&](unsigned l) { outside |= Mask{!in_global_arena(a.address[l]) || !in_global_arena(a.address[l] + a.width - 1)} << l; });
  if (outside != 0) {
    const Mask bad = outside & ~owned(a, outside);
    if (bad != 0) {
      address_fault(i, w, a, bad, Fault::illegal_address);
      lanes &= ~bad;
      if (lanes == 0) return 0;
      a.lanes = lanes;
      classify(a);
    }
  }
  if (w.observer != nullptr) {
    lanes &= w.observer->access(w.point(i, a.lanes), a);
    if (lanes == 0) return 0;
  }
  // What the checks let pass must still be somebody's memory.
  if (outside == 0 && range.live()) [[likely]] return lanes;
  const Mask good = owned(a, lanes);
  if (good != lanes) address_fault(i, w, a, lanes & ~good, Fault::illegal_address);
  return good;
}

void before_store(Warp& w, const Access& a, Mask lanes) {
  ++w.worker->memory_changes;
  if (w.worker->undo == nullptr || a.space != Space::global) return;
  if (lanes == a.lanes) {
    a.for_each_run([&](std::uint64_t address, std::uint64_t bytes, Mask) { w.worker->undo->save(address, bytes); });
  } else {
    for_lanes(lanes, [&](unsigned l) { w.worker->undo->save(a.address[l], a.width); });
  }
}

namespace {

Mask one_space(const Inst& i, Warp& w, const MemoryOp& op, Access& a) {
  const bool writes = op.kind != AccessKind::load;
  if (writes && w.observer != nullptr)
    for (unsigned c = 0; c < op.components; ++c) a.data[c] = {w.at<const std::byte>(op.registers[c]), op.register_width};
  const Mask lanes = admit(i, w, a);
  if (lanes == 0) return 0;
  const std::uint64_t bytes = std::uint64_t{op.width} * static_cast<unsigned>(std::popcount(lanes));
  if (writes) {
    w.worker->bytes_stored += bytes;
    if (a.space != Space::local) before_store(w, a, lanes);
  } else {
    w.worker->bytes_loaded += bytes;
    if (op.order != Order::weak) ++w.worker->polls;
  }
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
  static constexpr Space kSpaces[] = {Space::global, Space::shared, Space::local, Space::constant, Space::param, Space::global};
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
    const std::uint64_t first = a.address[a.first_lane()], bytes = a.shape == Shape::contiguous ? std::uint64_t{a.width} * kWarp : a.width;
    const bool global = a.shape != Shape::scattered && in_global_arena(first) && in_global_arena(first + bytes - 1);
    if (!global) return by_window(i, w, op, a);
  }
  return one_space(i, w, op, a);
}

}  // namespace machine
