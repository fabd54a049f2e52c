#include "observers/chunk.hpp"

#include <bit>

#include "exec/machine.hpp"
#include "memory/pool.hpp"
#include "observers/extent.hpp"
#include "observers/synccheck.hpp"

namespace machine::checks {

namespace {

// The same access by some of its lanes; `room` holds it where they are not all.
const Access& of_lanes(const Access& a, Mask lanes, Access& room) {
  return lanes == a.lanes ? a : room = narrowed(a, lanes);
}

// Calls f(access of one lane) for the lanes that read less, but something.
template <class F>
void each_short_source(const AsyncCopy& copy, Mask lanes, F&& f) {
  for (Mask rest = lanes & ~copy.whole; rest != 0; rest &= rest - 1) {
    const unsigned lane = static_cast<unsigned>(std::countr_zero(rest));
    if (copy.source_bytes[lane] == 0) continue;
    Access part = copy.source;
    part.lanes = part.breaks = Mask{1} << lane;
    part.shape = Shape::scattered;
    part.width = copy.source_bytes[lane];
    f(part);
  }
}

constexpr std::size_t kKeptSlots = 32;
constexpr Stamp kLastStamp = 1u << 31;

bool is_strong(const Access& a) {
  return a.order != Order::weak || a.kind == AccessKind::atomic || a.kind == AccessKind::reduction;
}

}  // namespace

Chunk::Chunk(const CheckOptions& options, const LaunchInfo& launch, const Regions& regions, ArenaBits& written,
             const Kept& kept, bool waits)
    : options_(options),
      launch_(launch),
      waits_(waits),
      race_report_(launch, sink_),
      memcheck_(launch, sink_, regions),
      initcheck_(launch, sink_, written, kept),
      global_races_(launch, race_report_, pages_, options.racecheck),
      traffic_(regions, options.row_bytes) {}

// What only the running blocks need goes back at once, for the chunk that this thread runs next: it is in the nearest
// cache.
void Chunk::chunk_end() {
  global_races_.finish();
  // A grid with many blocks at a time does not keep the shadows of all of them.
  for (std::size_t i = kKeptSlots; i < slots_.size(); ++i) *slots_[i] = {};
  Pool<Slot>::instance().give(slots_);
  slots_.clear();
}

void Chunk::block_begin(const BlockInfo& block) {
  if (slots_.size() <= block.slot) Pool<Slot>::instance().take(slots_, block.slot + 1 - slots_.size());
  Slot& slot = *slots_[block.slot];
  block.state = &slot;
  slot.waited = 0;
  slot.held.clear();
  slot.bulk = false;
  // Stamps go on from block to block; long before they run out, the slot begins anew.
  if (slot.order.highest() >= kLastStamp) slot = {};
  slot.order.begin(static_cast<std::uint32_t>(block.index), launch_.warps_per_block, block.threads);
  if (options_.racecheck) slot.shared.begin(block, launch_.kernel->shared(), launch_.dynamic_shared);
  if (options_.initcheck) initcheck_.block_begin(block);
}

void Chunk::block_end(const BlockInfo& block) {
  if (!options_.racecheck) return;
  if (block.shared_extent != 0) strong_.forget(block.shared, block.shared_extent);
  global_races_.block_end();
}

void Chunk::global(const WarpPoint& point, const Access& a, const Extent& extent) {
  Slot& slot = slot_of(point);
  if (options_.traffic) traffic_.global(a);
  if (options_.initcheck) initcheck_.global(point, a, extent, pages_);
  global_races_.access(slot.order, slot.held, point, a);
  if (waits_) {
    if ((slot.waited >> point.warp & 1) == 0) GlobalRaces::mark(a, point, slot.order.block(), early_);
    if (a.cache == CacheOp::nc) GlobalRaces::mark(a, point, slot.order.block(), read_only_);
  }
  if (options_.racecheck && is_strong(a)) strong_.access(slot.order, point, a);
}

void Chunk::shared(const WarpPoint& point, const Access& a, const Extent& extent) {
  if (options_.traffic) traffic_.shared(a, point.block->shared);
  if (options_.initcheck) initcheck_.shared(point, a, extent);
  if (!options_.racecheck) return;
  Slot& slot = slot_of(point);
  slot.shared.access(slot.order, race_report_, point, a, extent);
  if (slot.bulk) [[unlikely]]
    slot.proxy->access(slot.order, slot.shared, race_report_, point, a);
  if (is_strong(a)) strong_.access(slot.order, point, a);
}

Mask Chunk::access(const WarpPoint& point, const Access& a) {
  bytes_ += std::uint64_t{a.width} * static_cast<unsigned>(std::popcount(a.lanes));
  const Extent extent = extent_of(a);
  Mask on = a.lanes;
  switch (a.space) {
    case Space::global:
      if (options_.memcheck) on = memcheck_.global(point, a, extent);
      // Nobody writes the parameters of a launch, and all of them are written.
      if (on == 0 ||
          (a.kind == AccessKind::load && launch_.params && launch_.params->contains(extent.low, extent.bytes())))
        return on;
      if (on == a.lanes) {
        global(point, a, extent);
      } else {
        const Access part = narrowed(a, on);
        global(point, part, extent_of(part));
      }
      return on;
    case Space::shared:
      if (options_.memcheck) on = memcheck_.shared(point, a, extent);
      if (on == a.lanes) {
        shared(point, a, extent);
      } else if (on != 0) {
        const Access part = narrowed(a, on);
        shared(point, part, extent_of(part));
      }
      return on;
    case Space::local:
      if (options_.memcheck) on = memcheck_.local(point, a, extent);
      if (options_.initcheck && on != 0) initcheck_.local(point, on == a.lanes ? a : narrowed(a, on));
      return on;
    case Space::param:
    case Space::constant: return options_.memcheck ? memcheck_.global(point, a, extent) : on;
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
  if (!options_.racecheck) return;
  BlockOrder& order = slot_of(point).order;
  switch (kind) {
    case Collective::syncwarp: return order.syncwarp(point.warp, mask, point.alive);
    case Collective::shuffle:
    case Collective::vote:
    case Collective::match:
    case Collective::reduce:
    case Collective::elect: return order.meet(point.warp, mask, point.alive);
    case Collective::mma:
    case Collective::matrix_load:
    case Collective::matrix_store:
    case Collective::matrix_move: return;
  }
}

void Chunk::fence(const WarpPoint& point, FenceKind, Scope scope) {
  if (!options_.racecheck) return;
  Slot& slot = slot_of(point);
  global_races_.fence(slot.held, slot.order, point.warp, point.active, scope);
  slot.order.fence(point.warp, point.active, point.alive, scope);
}

void Chunk::mbarrier(const WarpPoint& point, const MbarrierEvent& event) {
  if (options_.racecheck) slot_of(point).order.mbarrier(point.warp, point.alive, event);
}

// A copy races from its issue on; it touches memory when it lands.
void Chunk::async_issue(const WarpPoint& point, const AsyncCopy& copy) {
  if (!options_.racecheck) return;
  Slot& slot = slot_of(point);
  Access room;
  if (copy.whole != 0)
    global_races_.async_access(slot.order, point, of_lanes(copy.source, copy.whole, room), Touch::async_read,
                               slot.order.async_stamp(point.warp));
  each_short_source(copy, copy.lanes, [&](const Access& part) {
    global_races_.async_access(slot.order, point, part, Touch::async_read, slot.order.async_stamp(point.warp));
  });
  slot.shared.async_write(slot.order, race_report_, point, copy.destination, extent_of(copy.destination));
}

void Chunk::async_commit(const WarpPoint& point) {
  if (options_.racecheck) slot_of(point).order.async_commit(point.warp, point.active);
}

Mask Chunk::async_land(const WarpPoint& point, const AsyncCopy& copy, Mask lanes, bool) {
  WarpPoint at = point;
  at.pc = copy.pc;
  Mask on = lanes;
  Access whole_room, landing_room;
  const Access& source = of_lanes(copy.source, lanes & copy.whole, whole_room);
  const Extent extent = source.lanes != 0 ? extent_of(source) : Extent{};
  bytes_ += std::uint64_t{copy.bytes} * 2 * static_cast<unsigned>(std::popcount(lanes));
  if (options_.memcheck) {
    if (source.lanes != 0) on &= memcheck_.global(at, source, extent) | ~source.lanes;
    each_short_source(copy, lanes,
                      [&](const Access& part) { on &= memcheck_.global(at, part, extent_of(part)) | ~part.lanes; });
  }
  if (on == 0) return on;
  const Access* destination = &of_lanes(copy.destination, on, landing_room);
  Extent room = extent_of(*destination);
  if (options_.memcheck) {
    on &= memcheck_.shared(at, *destination, room);
    if (on != 0 && on != destination->lanes) {
      destination = &of_lanes(copy.destination, on, landing_room);
      room = extent_of(*destination);
    }
  }
  if (on == 0) return on;
  if (options_.initcheck) initcheck_.landed(at, copy, {source, extent}, {*destination, room}, pages_);
  if (!options_.racecheck)
    for (Mask rest = on; rest != 0; rest &= rest - 1) {
      const unsigned lane = static_cast<unsigned>(std::countr_zero(rest));
      if (copy.source_bytes[lane] != 0)
        GlobalRaces::mark_read(copy.source.address[lane], copy.source_bytes[lane], pages_);
    }
  if (options_.traffic) traffic_.landed(copy, on);
  return on;
}

void Chunk::async_wait(const WarpPoint& point, std::uint32_t groups_left) {
  if (options_.racecheck) slot_of(point).order.async_wait(point.warp, point.active, point.alive, groups_left);
}

void Chunk::function_entered(const WarpPoint& point) {
  if (options_.initcheck) initcheck_.function_entered(point);
}

void Chunk::stack_grown(const WarpPoint& point, const GrownStack::Array& grown) {
  if (options_.initcheck) initcheck_.stack_grown(point, grown);
}

// Freeing memory is to the others like writing all of it, each byte to another value.
void Chunk::heap_freed(const WarpPoint& point, const Object& object) {
  constexpr std::uint64_t kMost = 64 << 10;  // of a large object, its beginning
  Access a;
  a.kind = AccessKind::store;
  a.shape = Shape::uniform;
  a.lanes = a.breaks = point.active;
  std::array<std::uint64_t, kWarp> address;
  std::array<std::byte, 8> other;
  a.address = address.data();
  a.data[0] = {other.data(), 0};
  Slot& slot = slot_of(point);
  for (std::uint64_t at = 0; at < std::min(object.size, kMost); at += a.width) {
    a.width = static_cast<std::uint32_t>(std::bit_floor(std::min<std::uint64_t>(object.size - at, other.size())));
    address.fill(object.base + at);
    for (std::uint32_t b = 0; b < a.width; ++b) other[b] = ~reinterpret_cast<const std::byte*>(object.base + at)[b];
    global_races_.access(slot.order, slot.held, point, a);
  }
}

void Chunk::threads_exit(const WarpPoint& point) { slot_of(point).order.exit(point.warp, point.active); }

void Chunk::fault(const WarpPoint& point, const FaultEvent& event) {
  const bool address = event.fault == Fault::illegal_address || event.fault == Fault::misaligned_address;
  if (address) return memcheck_.fault(point, event);
  if (check_of(event.fault) == "synccheck" && !options_.synccheck) return;
  if (check_of(event.fault) == "memcheck" && !options_.memcheck) return;
  report_fault(sink_, launch_, point, event);
}

// A shuffle that reads an absent lane is synccheck's, whatever becomes of it is followed in the same way.
Following Chunk::following() const {
  return options_.initcheck ? Following::memory : options_.synccheck ? Following::registers : Following::none;
}

void Chunk::undefined_used(const WarpPoint& point, UndefinedUse use, Mask lanes, const Origin& origin) {
  if (origin.kind == Origin::Kind::absent ? options_.synccheck : options_.initcheck)
    initcheck_.used(point, use, lanes, origin);
}

void Chunk::dependency_wait(const WarpPoint& point) { slot_of(point).waited |= 1u << point.warp; }

void Chunk::dependency_launch(const WarpPoint& point) {
  if ((slot_of(point).waited >> point.warp & 1) == 0) hurries_ = true;
}

}  // namespace machine::checks
