// racecheck of copies: each is an actor of its own, which races from its issue on, though it touches memory when it
// lands.
#include "observers/copy_parts.hpp"
#include "observers/racecheck.hpp"

namespace machine::checks {

void Racecheck::async_issue(const WarpPoint& point, const AsyncCopy& copy) {
  if (!checks_) return;
  BlockState& state = state_of(point);
  Access room;
  if (copy.whole != 0)
    global_races_.async_access(state.order, point, of_lanes(copy.source, copy.whole, room), Touch::async_read,
                               state.order.async_stamp(point.warp));
  each_short_source(copy, copy.lanes, [&](const Access& part) {
    global_races_.async_access(state.order, point, part, Touch::async_read, state.order.async_stamp(point.warp));
  });
  state.shared.async_write(state.order, report_, point, copy.destination, extent_of(copy.destination));
}

void Racecheck::async_commit(const WarpPoint& point) {
  if (checks_) state_of(point).order.async_commit(point.warp, point.active);
}

void Racecheck::async_wait(const WarpPoint& point, std::uint32_t groups_left) {
  if (checks_) state_of(point).order.async_wait(point.warp, point.active, point.alive, groups_left);
}

// With races looked for, the source was marked at the issue.
void Racecheck::landed(const WarpPoint&, const AsyncCopy& copy, Mask lanes, const CopySide&, const CopySide&) {
  if (checks_) return;
  for (Mask rest = lanes; rest != 0; rest &= rest - 1) {
    const unsigned lane = static_cast<unsigned>(std::countr_zero(rest));
    if (copy.source_bytes[lane] != 0)
      GlobalRaces::mark_read(copy.source.address[lane], copy.source_bytes[lane], pages_);
  }
}

void Racecheck::bulk_issue(const WarpPoint& point, const BulkCopy& copy) {
  BlockState& state = state_of(point);
  Stamp stamp = 0;
  if (checks_) {
    if (!state.proxy) state.proxy = std::make_unique<AsyncProxy>();
    if (!state.bulk) state.proxy->begin(*point.block);
    state.bulk = true;
    std::array<std::uint64_t, kWarp> mbarrier{};
    mbarrier[copy.lane] = copy.mbarrier;
    check_initialised(point, Mask{1} << copy.lane, mbarrier.data());
    stamp = state.proxy->issue(state.order, state.shared, report_, copy);
  }
  each_global_part(copy, [&](const Access& part, Touch touch) {
    global_races_.async_access(state.order, point, part, touch, stamp, copy.element);
    if (waits_ && state.is_early(point)) GlobalRaces::mark_as(touch, part, point, state.order.block(), early_);
  });
}

void Racecheck::bulk_land(const WarpPoint& point, const BulkCopy& copy, std::uint64_t phase) {
  if (checks_) state_of(point).proxy->land(state_of(point).order, copy, phase);
}

void Racecheck::bulk_commit(const WarpPoint& point) {
  if (BlockState& state = state_of(point); state.bulk) state.proxy->commit(state.order, point);
}

void Racecheck::bulk_wait(const WarpPoint& point, std::uint32_t groups_left, bool read) {
  if (BlockState& state = state_of(point); state.bulk) state.proxy->wait(state.order, point, groups_left, read);
}

}  // namespace machine::checks
