// racecheck on mbarriers: their initialisation, which is an access like any other to those who use them.
#include <algorithm>
#include <bit>

#include "observers/racecheck.hpp"

namespace machine::checks {

void Racecheck::check_initialised(const WarpPoint& point, Mask lanes, const std::uint64_t* address) {
  BlockState& state = state_of(point);
  const BlockOrder& order = state.order;
  const Stamp floor = order.warp(point.warp).barrier_floor;
  if (state.newest_initialised < floor) return;
  for (; lanes != 0; lanes &= lanes - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(lanes));
    for (const Initialisation& by : state.initialised) {
      if (by.address != address[lane] || by.stamp < floor) continue;
      if (order.ordered(point.warp, lane, by.warp, by.lane, by.stamp)) continue;
      const Relation relation = order.relation(point.warp, lane, order.block(), by.warp, by.lane, by.stamp);
      if (relation == Relation::ordered) continue;
      const Party now{order.block(), point.warp, lane, point.pc, Touch::atomic},
          then{order.block(), by.warp, by.lane, by.pc, Touch::write};
      const std::uint64_t offset = by.address - point.block->shared;
      report_.race(order, now, then, by.stamp, relation, Conflict::race, Space::shared, offset,
                   state.shared.object_at(offset));
    }
  }
}

void Racecheck::mbarrier(const WarpPoint& point, const MbarrierEvent& event) {
  if (!checks_) return;
  BlockState& state = state_of(point);
  if (event.op == MbarrierOp::init) {
    const Stamp stamp = state.newest_initialised = state.order.warp(point.warp).clock;
    for (Mask lanes = event.lanes; lanes != 0; lanes &= lanes - 1) {
      const auto lane = static_cast<unsigned>(std::countr_zero(lanes));
      std::erase_if(state.initialised, [&](const Initialisation& i) { return i.address == event.address[lane]; });
      state.initialised.push_back({event.address[lane], point.warp, lane, point.pc, stamp});
    }
  } else {
    check_initialised(point, event.lanes, event.address);
  }
  state.order.mbarrier(point.warp, point.alive, event);
}

}  // namespace machine::checks
