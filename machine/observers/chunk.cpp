#include "observers/chunk.hpp"

#include <bit>

#include "exec/machine.hpp"
#include "observers/synccheck.hpp"

namespace machine::checks {

namespace {

// The same access by fewer lanes.
Access narrowed(const Access& a, Mask lanes) {
  Access b = a;
  b.lanes = lanes;
  b.breaks = 0;
  if (a.shape == Shape::contiguous) b.shape = Shape::scattered;
  unsigned before = 32;
  for (Mask rest = lanes; rest != 0; rest &= rest - 1) {
    const unsigned l = static_cast<unsigned>(std::countr_zero(rest));
    if (before == 32 || a.address[l] != a.address[before] + a.width) b.breaks |= Mask{1} << l;
    before = l;
  }
  return b;
}

bool is_strong(const Access& a) {
  return a.order != Order::weak || a.kind == AccessKind::atomic || a.kind == AccessKind::reduction;
}

}  // namespace

Chunk::Chunk(const CheckOptions& options, const LaunchInfo& launch, const Regions& regions, ArenaBits& written, bool waits)
    : options_(options),
      launch_(launch),
      waits_(waits),
      race_report_(launch, sink_),
      memcheck_(launch, sink_, regions),
      initcheck_(launch, sink_, written),
      global_races_(launch, race_report_, options.racecheck),
      traffic_(regions, options.row_bytes) {}

void Chunk::block_begin(const BlockInfo& block) {
  if (slots_.size() <= block.slot) slots_.resize(block.slot + 1);
  if (!slots_[block.slot]) slots_[block.slot] = std::make_unique<Slot>();
  Slot& slot = *slots_[block.slot];
  block.state = &slot;
  slot.waited = 0;
  slot.order.begin(static_cast<std::uint32_t>(block.index), launch_.warps_per_block, block.threads);
  if (options_.racecheck) slot.shared.begin(block, launch_.kernel->shared(), launch_.dynamic_shared);
  if (options_.initcheck) initcheck_.block_begin(block);
}

void Chunk::block_end(const BlockInfo& block) {
  if (options_.racecheck && block.shared_extent != 0) strong_.forget(block.shared, block.shared_extent);
}

void Chunk::global(const WarpPoint& point, const Access& a) {
  Slot& slot = slot_of(point);
  if (options_.traffic) traffic_.global(a);
  if (options_.initcheck) initcheck_.global(point, a, pages_);
  global_races_.access(slot.order, point, a, pages_);
  if (waits_ && (slot.waited >> point.warp & 1) == 0) GlobalRaces::mark(a, point, slot.order.block(), early_);
  if (options_.racecheck && is_strong(a)) strong_.access(slot.order, point, a);
}

Mask Chunk::access(const WarpPoint& point, const Access& a) {
  bytes_ += std::uint64_t{a.width} * static_cast<unsigned>(std::popcount(a.lanes));
  Mask on = a.lanes;
  switch (a.space) {
    case Space::global:
      if (options_.memcheck) on = memcheck_.global(point, a);
      if (on == a.lanes) global(point, a);
      else if (on != 0) global(point, narrowed(a, on));
      return on;
    case Space::shared: {
      if (options_.memcheck) on = memcheck_.shared(point, a);
      if (on == 0) return on;
      Slot& slot = slot_of(point);
      const auto check = [&](const Access& b) {
        if (options_.traffic) traffic_.shared(b, point.block->shared);
        if (options_.initcheck) initcheck_.shared(point, b);
        if (!options_.racecheck) return;
        slot.shared.access(slot.order, race_report_, point, b);
        if (is_strong(b)) strong_.access(slot.order, point, b);
      };
      if (on == a.lanes) check(a);
      else check(narrowed(a, on));
      return on;
    }
    case Space::local:
      if (options_.memcheck) on = memcheck_.local(point, a);
      if (options_.initcheck && on != 0) initcheck_.local(point, on == a.lanes ? a : narrowed(a, on));
      return on;
    case Space::param:
    case Space::constant:
      return options_.memcheck ? memcheck_.global(point, a) : on;
  }
  return on;
}

void Chunk::barrier_arrive(const WarpPoint& point, const BarrierArrival& arrival) {
  if (options_.racecheck && arrival.use == BarrierUse::arrive)
    slot_of(point).order.arrive(point.warp, arrival.id, point.active, point.alive);
}

void Chunk::barrier_release(const BlockInfo& block, const BarrierRelease& release) {
  if (options_.racecheck) static_cast<Slot*>(block.state)->order.release(release);
}

void Chunk::collective(const WarpPoint& point, Collective kind, Mask mask) {
  if (options_.racecheck && kind == Collective::syncwarp) slot_of(point).order.syncwarp(point.warp, mask, point.alive);
}

void Chunk::fence(const WarpPoint& point, FenceKind, Scope scope) {
  if (options_.racecheck) slot_of(point).order.fence(point.warp, point.active, point.alive, scope);
}

void Chunk::mbarrier(const WarpPoint& point, const MbarrierEvent& event) {
  if (options_.racecheck) slot_of(point).order.mbarrier(point.warp, point.alive, event);
}

// A copy races from its issue on; it touches memory when it lands.
void Chunk::async_issue(const WarpPoint& point, const AsyncCopy& copy) {
  if (!options_.racecheck) return;
  Slot& slot = slot_of(point);
  for (Mask rest = copy.lanes; rest != 0; rest &= rest - 1) {
    const unsigned lane = static_cast<unsigned>(std::countr_zero(rest));
    if (copy.source_bytes[lane] != 0)
      global_races_.async_read(slot.order, point, lane, copy.source[lane], copy.source_bytes[lane], pages_);
    slot.shared.async_write(slot.order, race_report_, point, lane, copy.destination[lane], copy.bytes);
  }
}

void Chunk::async_commit(const WarpPoint& point) {
  if (options_.racecheck) slot_of(point).order.async_commit(point.warp, point.active);
}

Mask Chunk::async_land(const WarpPoint& point, const AsyncCopy& copy, Mask lanes, bool) {
  Mask on = lanes;
  WarpPoint at = point;
  at.pc = copy.pc;
  for (Mask rest = lanes; rest != 0; rest &= rest - 1) {
    const unsigned lane = static_cast<unsigned>(std::countr_zero(rest));
    const std::uint32_t read = copy.source_bytes[lane];
    bytes_ += read + copy.bytes;
    if (options_.memcheck && !(memcheck_.copied(at, lane, Space::global, copy.source[lane], read, false) &&
                               memcheck_.copied(at, lane, Space::shared, copy.destination[lane], copy.bytes, true))) {
      on &= ~(Mask{1} << lane);
      continue;
    }
    if (options_.initcheck) initcheck_.landed(at, copy, lane, pages_);
    if (!options_.racecheck && read != 0) GlobalRaces::mark_read(copy.source[lane], read, pages_);
  }
  if (options_.traffic && on != 0) traffic_.landed(copy, on);
  return on;
}

void Chunk::async_wait(const WarpPoint& point, std::uint32_t groups_left) {
  if (options_.racecheck) slot_of(point).order.async_wait(point.warp, point.active, point.alive, groups_left);
}

void Chunk::threads_exit(const WarpPoint& point) { slot_of(point).order.exit(point.warp, point.active); }

void Chunk::fault(const WarpPoint& point, const FaultEvent& event) {
  const bool address = event.fault == Fault::illegal_address || event.fault == Fault::misaligned_address;
  if (address) return memcheck_.fault(point, event);
  if (is_synchronisation(event.fault) && !options_.synccheck) return;
  report_fault(sink_, launch_, point, event);
}

void Chunk::dependency_wait(const WarpPoint& point) { slot_of(point).waited |= 1u << point.warp; }

}  // namespace machine::checks
