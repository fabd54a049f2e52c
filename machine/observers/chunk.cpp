#include "observers/chunk.hpp"

#include <bit>

#include "observers/copy_parts.hpp"

namespace machine::checks {

// What only the running blocks need goes back at once, for the chunk that this thread runs next: it is in the nearest
// cache.
void Chunk::chunk_end() {
  each([&](auto& check) { check.chunk_end(); });
}

void Chunk::block_begin(const BlockInfo& block) {
  each([&](auto& check) { check.block_begin(block); });
}

void Chunk::block_end(const BlockInfo& block) {
  each([&](auto& check) { check.block_end(block); });
}

// The lanes that every check lets go on; admit(check) gives those of one.
template <class F>
Mask Chunk::admitted(F&& admit) {
  Mask on = ChunkCheck::kAllLanes;
  each([&](auto& check) { on &= admit(check); });
  return on;
}

// Calls f(check, access, its extent) with the lanes of the access that go on.
template <class F>
void Chunk::observe(const Access& a, Mask on, const Extent& extent, F&& f) {
  if (on == a.lanes) return each([&](auto& check) { f(check, a, extent); });
  const Access part = narrowed(a, on);
  const Extent room = extent_of(part);
  each([&](auto& check) { f(check, part, room); });
}

Mask Chunk::access(const WarpPoint& point, const Access& a) {
  bytes_ += std::uint64_t{a.width} * static_cast<unsigned>(std::popcount(a.lanes));
  const Extent extent = extent_of(a);
  Mask on = a.lanes;
  switch (a.space) {
    case Space::global: {
      on &= admitted([&](auto& check) { return check.admit_global(point, a, extent); });
      const auto& parameters = context_.launch.params;
      if (on == 0 || (a.kind == AccessKind::load && parameters && parameters->contains(extent.low, extent.bytes())))
        return on;
      observe(a, on, extent, [&](auto& check, const Access& part, const Extent& e) { check.global(point, part, e); });
      return on;
    }
    case Space::shared:
      on &= admitted([&](auto& check) { return check.admit_shared(point, a, extent); });
      if (on == 0) return on;
      observe(a, on, extent, [&](auto& check, const Access& part, const Extent& e) { check.shared(point, part, e); });
      return on;
    case Space::local:
      on &= admitted([&](auto& check) { return check.admit_local(point, a, extent); });
      if (on == 0) return on;
      observe(a, on, extent, [&](auto& check, const Access& part, const Extent& e) { check.local(point, part, e); });
      return on;
    case Space::param: return on & admitted([&](auto& check) { return check.admit_global(point, a, extent); });
    case Space::constant:
      on &= admitted([&](auto& check) { return check.admit_global(point, a, extent); });
      if (on == 0) return on;
      observe(a, on, extent, [&](auto& check, const Access& part, const Extent& e) { check.constant(point, part, e); });
      return on;
  }
  return on;
}

void Chunk::barrier_arrive(const WarpPoint& point, const BarrierArrival& arrival) {
  each([&](auto& check) { check.barrier_arrive(point, arrival); });
}

void Chunk::barrier_release(const BlockInfo& block, const BarrierRelease& release) {
  each([&](auto& check) { check.barrier_release(block, release); });
}

void Chunk::collective(const WarpPoint& point, Collective kind, Mask mask) {
  each([&](auto& check) { check.collective(point, kind, mask); });
}

void Chunk::fence(const WarpPoint& point, FenceKind, Scope scope) {
  each([&](auto& check) { check.fence(point, scope); });
}

void Chunk::proxy_fence(const WarpPoint& point) {
  each([&](auto& check) { check.proxy_fence(point); });
}

void Chunk::mbarrier(const WarpPoint& point, const MbarrierEvent& event) {
  each([&](auto& check) { check.mbarrier(point, event); });
}

void Chunk::async_issue(const WarpPoint& point, const AsyncCopy& copy) {
  each([&](auto& check) { check.async_issue(point, copy); });
}

void Chunk::async_commit(const WarpPoint& point) {
  each([&](auto& check) { check.async_commit(point); });
}

void Chunk::async_wait(const WarpPoint& point, std::uint32_t groups_left) {
  each([&](auto& check) { check.async_wait(point, groups_left); });
}

Mask Chunk::async_land(const WarpPoint& point, const AsyncCopy& copy, Mask lanes, bool) {
  WarpPoint at = point;
  at.pc = copy.pc;
  Access whole_room, landing_room;
  const Access& source = of_lanes(copy.source, lanes & copy.whole, whole_room);
  const Extent extent = source.lanes != 0 ? extent_of(source) : Extent{};
  bytes_ += std::uint64_t{copy.bytes} * 2 * static_cast<unsigned>(std::popcount(lanes));
  const auto readable = [&](const Access& part, const Extent& e) {
    return admitted([&](auto& check) { return check.admit_global(at, part, e); }) | ~part.lanes;
  };
  Mask on = lanes;
  if (source.lanes != 0) on &= readable(source, extent);
  each_short_source(copy, lanes, [&](const Access& part) { on &= readable(part, extent_of(part)); });
  if (on == 0) return on;
  const Access* destination = &of_lanes(copy.destination, on, landing_room);
  Extent room = extent_of(*destination);
  on &= admitted([&](auto& check) { return check.admit_shared(at, *destination, room); });
  if (on == 0) return on;
  if (on != destination->lanes) {
    destination = &of_lanes(copy.destination, on, landing_room);
    room = extent_of(*destination);
  }
  each([&](auto& check) { check.landed(at, copy, on, {source, extent}, {*destination, room}); });
  return on;
}

bool Chunk::bulk_issue(const WarpPoint& point, const BulkCopy& copy) {
  bool good = true;
  each([&](auto& check) { good = good && check.admit_bulk(point, copy); });
  if (!good) return false;
  if (copy.kind == BulkKind::prefetch) return true;
  each([&](auto& check) { check.bulk_issue(point, copy); });
  each_global_side(copy, [&](std::uint64_t, std::uint64_t bytes, Touch) { bytes_ += bytes; });
  return true;
}

void Chunk::bulk_land(const WarpPoint& point, const BulkCopy& copy, std::uint64_t phase) {
  each([&](auto& check) { check.bulk_land(point, copy, phase); });
}

void Chunk::bulk_commit(const WarpPoint& point) {
  each([&](auto& check) { check.bulk_commit(point); });
}

void Chunk::bulk_wait(const WarpPoint& point, std::uint32_t groups_left, bool read) {
  each([&](auto& check) { check.bulk_wait(point, groups_left, read); });
}

void Chunk::function_entered(const WarpPoint& point) {
  each([&](auto& check) { check.function_entered(point); });
}

void Chunk::stack_grown(const WarpPoint& point, const GrownStack::Array& grown) {
  each([&](auto& check) { check.stack_grown(point, grown); });
}

void Chunk::heap_freed(const WarpPoint& point, const Object& object) {
  each([&](auto& check) { check.heap_freed(point, object); });
}

void Chunk::threads_exit(const WarpPoint& point) {
  each([&](auto& check) { check.threads_exit(point); });
}

void Chunk::dependency_wait(const WarpPoint& point) {
  each([&](auto& check) { check.dependency_wait(point); });
}

void Chunk::dependency_launch(const WarpPoint& point) {
  each([&](auto& check) { check.dependency_launch(point); });
}

// An address that execution refuses is described by memcheck, whether or not it is on.
void Chunk::fault(const WarpPoint& point, const FaultEvent& event) {
  if (event.fault == Fault::illegal_address || event.fault == Fault::misaligned_address)
    return memcheck_.fault(point, event);
  if (context_.options.wants(check_of(event.fault))) report_fault(sink_, context_.launch, point, event);
}

Following Chunk::following() const {
  Following most = Following::none;
#define CHECK(name, type, sanitizer) \
  if (context_.options.name) most = std::max(most, type::kFollowing);
#include "observers/checks.inc"
#undef CHECK
  return most;
}

// A shuffle that reads an absent lane is synccheck's; what becomes of its value is followed likewise.
void Chunk::undefined_used(const WarpPoint& point, UndefinedUse use, Mask lanes, const Origin& origin) {
  const CheckOptions& options = context_.options;
  if (origin.kind == Origin::Kind::absent ? options.synccheck : options.initcheck)
    initcheck_.used(point, use, lanes, origin);
}

}  // namespace machine::checks
