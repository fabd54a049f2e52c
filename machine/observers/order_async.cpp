// Who knows what in a block: mbarriers and copies.
//
// An mbarrier's phase collects what those who arrive know, and whoever sees it complete learns that. Copies of a warp
// are an actor with a clock of its own; a wait raises up to where a lane knows it.
#include "observers/order_lanes.hpp"

namespace machine::checks {

// Lanes arrive at a phase of an mbarrier with all that they know; `own` is the stamp of the arrival.
void BlockOrder::bring(Knowledge& phase, unsigned w, Mask lanes, Mask alive, Stamp own) const {
  const WarpOrder& warp = warps_[w];
  phase.join(warp.common.now);
  const Stamp copied = warp.common.copied;
  each_lane(lanes & warp.split, [&](unsigned l) {
    phase.join(warp.lane[l]->now);
    if (warp.lane[l]->copied > copied) phase.own.add(Grain{async_actor(w), Mask{1} << l, warp.lane[l]->copied});
  });
  if (copied != 0) phase.own.add(Grain{async_actor(w), whole_if(lanes, alive), copied});
  phase.own.add(Grain{w, whole_if(lanes, alive), own});
}

void BlockOrder::mbarrier(unsigned w, Mask alive, const MbarrierEvent& event) {
  WarpOrder& warp = warps_[w];
  warp.alive = alive;
  const bool arrives = event.op == MbarrierOp::arrive || event.op == MbarrierOp::arrive_drop ||
                       event.op == MbarrierOp::arrive_expect_tx || event.op == MbarrierOp::async_arrive;
  if (event.op == MbarrierOp::init) {
    each_lane(event.lanes,
              [&](unsigned l) { phases_.erase(event.address[l]), mbarrier_sources_.erase(event.address[l]); });
    return;
  }
  if (!arrives && event.op != MbarrierOp::test) return;
  if (event.phase == nullptr || event.order == Order::relaxed) return;
  const Stamp own = event.op == MbarrierOp::async_arrive ? ++warp.async_clock : ++warp.clock;
  Mask rest = event.lanes;
  while (rest != 0) {  // lanes at one barrier and phase, together
    const unsigned first = static_cast<unsigned>(std::countr_zero(rest));
    Mask same = 0;
    each_lane(rest, [&](unsigned l) {
      if (event.address[l] == event.address[first] && event.phase[l] == event.phase[first]) same |= Mask{1} << l;
    });
    rest &= ~same;
    auto& phases = phases_[event.address[first]];
    Knowledge& phase = phases[event.phase[first]];
    if (event.op == MbarrierOp::async_arrive) {
      phase.own.add(Grain{async_actor(w), whole_if(same, alive), own});
    } else if (arrives) {
      bring(phase, w, same, alive, own);
    } else {
      if (const auto source = mbarrier_sources_.find(event.address[first]); source != mbarrier_sources_.end())
        phase.own.add(Completion{source->second, static_cast<Stamp>(event.phase[first] + 1)});
      const Knowledge seen = phase;
      each_state(w, same, alive, [&](LaneState& state, Mask) { state.now.join(seen); });
    }
    if (phases.size() > 8) {
      const std::uint64_t current = event.phase[first];
      std::erase_if(phases, [&](const auto& entry) { return entry.first + 4 < current; });
    }
  }
  warp.warp_floor = warp.common.now.own.upto[w];
}

void BlockOrder::async_commit(unsigned w, Mask lanes) {
  WarpOrder& warp = warps_[w];
  warp.commits.push_back({lanes, ++warp.async_clock});
}

void BlockOrder::async_wait(unsigned w, Mask lanes, Mask alive, std::uint32_t groups_left) {
  WarpOrder& warp = warps_[w];
  // For each lane the newest commit that has at least `groups_left` of its own commits after it.
  Mask rest = lanes;
  std::array<std::uint32_t, 32> later{};
  for (std::size_t i = warp.commits.size(); i-- > 0 && rest != 0;) {
    Mask done = 0;
    each_lane(warp.commits[i].lanes & rest, [&](unsigned l) { done |= later[l]++ >= groups_left ? Mask{1} << l : 0; });
    if (done == 0) continue;
    const Stamp upto = warp.commits[i].upto;
    each_state(w, done, alive, [&](LaneState& state, Mask) { state.copied = std::max(state.copied, upto); });
    rest &= ~done;
    if ((alive & ~done) == 0) warp.commits.erase(warp.commits.begin(), warp.commits.begin() + static_cast<long>(i));
  }
}

void BlockOrder::async_landed(unsigned w, Mask lanes, Mask alive, Stamp stamp) {
  each_state(w, lanes, alive, [&](LaneState& state, Mask) { state.copied = std::max(state.copied, stamp + 1); });
}

}  // namespace machine::checks
