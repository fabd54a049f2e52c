// The checks of a chunk on bulk copies.
#include <algorithm>

#include "observers/chunk.hpp"

namespace machine::checks {

namespace {

constexpr std::uint64_t kPart = kLineBytes;

// Calls f(access) for accesses of one lane that make up a stretch of global memory.
template <class F>
void each_part(AccessKind kind, unsigned lane, std::uint64_t address, std::uint64_t bytes, F&& f) {
  std::uint64_t addresses[kWarp] = {};
  Access a;
  a.kind = kind;
  a.lanes = a.breaks = Mask{1} << lane;
  a.address = addresses;
  for (const std::uint64_t end = address + bytes; address < end;) {
    const std::uint64_t next = std::min(end, (address / kPart + 1) * kPart);
    addresses[lane] = address;
    a.width = static_cast<std::uint32_t>(next - address);
    f(a);
    address = next;
  }
}

}  // namespace

bool Chunk::bulk_issue(const WarpPoint& point, const BulkCopy& copy) {
  if (options_.memcheck && !memcheck_.bulk(point, copy)) return false;
  if (copy.kind == BulkKind::prefetch) return true;
  Slot& slot = slot_of(point);
  if (options_.initcheck && copy.reduces) initcheck_.reduced(point, copy, pages_);
  Stamp stamp = 0;
  if (options_.racecheck) {
    if (!slot.proxy) slot.proxy = std::make_unique<AsyncProxy>();
    if (!slot.bulk) slot.proxy->begin(*point.block);
    slot.bulk = true;
    stamp = slot.proxy->issue(slot.order, slot.shared, race_report_, copy);
  }
  const bool atomic = copy.reduces;
  const auto touch = [&](std::uint64_t address, std::uint64_t bytes, Touch how) {
    each_part(how == Touch::async_read ? AccessKind::load
              : atomic                 ? AccessKind::reduction
                                       : AccessKind::store,
              copy.lane, address, bytes, [&](const Access& a) {
                global_races_.async_access(slot.order, point, a, how, stamp, copy.element);
                if (waits_ && (slot.waited >> point.warp & 1) == 0)
                  GlobalRaces::mark_as(how, a, point, slot.order.block(), early_);
                if (options_.traffic) traffic_.global(a);
              });
    bytes_ += bytes;
  };
  if (!copy.reads_shared() && !copy.registers)
    copy.each_source([&](std::uint64_t address, std::uint64_t bytes) { touch(address, bytes, Touch::async_read); });
  if (!copy.writes_shared())
    copy.each_destination([&](std::uint64_t address, std::uint64_t bytes) {
      touch(address, bytes, atomic ? Touch::atomic : Touch::async_write);
    });
  return true;
}

void Chunk::bulk_land(const WarpPoint& point, const BulkCopy& copy, std::uint64_t phase) {
  if (options_.initcheck) initcheck_.landed(point, copy, pages_);
  if (options_.racecheck) slot_of(point).proxy->land(slot_of(point).order, copy, phase);
}

void Chunk::bulk_commit(const WarpPoint& point) {
  if (Slot& slot = slot_of(point); slot.bulk) slot.proxy->commit(slot.order, point);
}

void Chunk::bulk_wait(const WarpPoint& point, std::uint32_t groups_left, bool read) {
  if (Slot& slot = slot_of(point); slot.bulk) slot.proxy->wait(slot.order, point, groups_left, read);
}

void Chunk::proxy_fence(const WarpPoint& point) {
  if (options_.racecheck) slot_of(point).order.proxy_fence(point.warp, point.active, point.alive);
}

}  // namespace machine::checks
