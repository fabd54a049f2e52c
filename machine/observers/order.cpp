// Who knows what in a block: lanes that meet at barriers and collectives.
//
// A warp has one state for all its lanes and, while they differ, one for each group of them; a meeting joins the states
// of who arrives and adds the result to those of who goes on.
#include "observers/order.hpp"

#include <bit>

#include "observers/order_lanes.hpp"

namespace machine::checks {

void LaneState::begin(Stamp start) {
  now.own.upto.fill(start);
  now.own.grains.clear();
  now.own.completions.clear();
  now.own.proxied.reset();
  now.others.reset();
  learned.reset();
  copied = 0;
  observed.reset();
  far.reset();
  halfway.reset();
  narrow.reset();
  fenced = {};
}

void BlockOrder::WarpOrder::begin(Stamp start, Mask lanes) {
  clock = barrier_floor = warp_floor = async_clock = met = start;
  alive = lanes;
  each_lane(split, [&](unsigned l) { lane[l].reset(); });
  split = 0;
  common.begin(start);
  commits.clear();
}

void BlockOrder::begin(std::uint32_t block, unsigned warps, std::uint32_t threads) {
  const Stamp start = start_ = highest() + 1;
  block_ = block;
  mbarrier_sources_.clear();
  warps_.resize(warps);
  for (unsigned w = 0; w < warps; ++w) {
    const std::uint32_t rest = threads - 32 * w;
    warps_[w].begin(start, rest >= 32 ? kFullMask : (Mask{1} << rest) - 1);
  }
  at_barrier_.upto.fill(start);
  at_barrier_.grains.clear();
  at_barrier_.completions.clear();
  at_barrier_.proxied.reset();
  for (auto& meeting : meetings_) meeting.reset();
  phases_.clear();
}

Stamp BlockOrder::highest() const {
  Stamp highest = 0;
  for (const WarpOrder& w : warps_) highest = std::max({highest, w.clock, w.async_clock});
  return highest;
}

bool BlockOrder::ordered(unsigned w, unsigned lane, unsigned actor, unsigned by_lane, Stamp stamp) const {
  const WarpOrder& warp = warps_[w];
  if (actor == w && by_lane == lane) return true;
  const bool own_copy = actor == async_actor(w) && by_lane == lane;
  if (warp.common.now.own.covers(actor, by_lane, stamp) || (own_copy && stamp < warp.common.copied)) return true;
  if ((warp.split >> lane & 1) == 0) return false;
  const LaneState& own = *warp.lane[lane];
  return own.now.own.covers(actor, by_lane, stamp) || (own_copy && stamp < own.copied);
}

Relation BlockOrder::relation(unsigned w, unsigned lane, std::uint32_t block, unsigned actor, unsigned by_lane,
                              Stamp stamp) const {
  const WarpOrder& warp = warps_[w];
  const LaneState* states[2] = {&warp.common, (warp.split >> lane & 1) != 0 ? warp.lane[lane].get() : nullptr};
  const auto covers = [&](const Knowledge& k) {
    if (block == block_) return k.own.covers(actor, by_lane, stamp);
    const Reach* reach = find(k.others, block);
    return reach != nullptr && reach->covers(actor, by_lane, stamp);
  };
  if (block == block_ && ordered(w, lane, actor, by_lane, stamp)) return Relation::ordered;
  for (const LaneState* s : states)
    if (s && covers(s->now)) return Relation::ordered;
  const auto seen = [&](std::shared_ptr<const Knowledge> LaneState::* what) {
    for (const LaneState* s : states)
      if (s && s->*what && covers(*(s->*what))) return true;
    return false;
  };
  if (seen(&LaneState::halfway)) return Relation::narrow;
  if (seen(&LaneState::observed) || seen(&LaneState::far)) return Relation::one_sided;
  if (seen(&LaneState::narrow)) return Relation::narrow;
  return block == block_ && actor == w && stamp < warp.met ? Relation::met : Relation::unordered;
}

// Joins `from`, the state of `lanes` of warp w, into what is not theirs alone.
void BlockOrder::learn(LaneState& into, const LaneState& from, unsigned w, Mask lanes) const {
  into.now.join(from.now);
  if (from.copied != 0) into.now.own.add(Grain{async_actor(w), lanes, from.copied});
  join_shared(into.observed, from.observed);
  join_shared(into.far, from.far);
  join_shared(into.halfway, from.halfway);
  join_shared(into.narrow, from.narrow);
  for (unsigned width = 0; width < 2; ++width) {
    if (!from.fenced[width]) continue;
    Fenced outside{settled(*from.fenced[width], w, lanes)};
    if (const auto& kept = into.fenced[width]) {
      outside.known.join(kept->known);
      outside.self = kept->self;
      outside.copied = kept->copied;
    }
    into.fenced[width] = std::make_shared<const Fenced>(std::move(outside));
  }
}

// All lanes of the warp meet: what each knew, all know.
void BlockOrder::fold(unsigned w) {
  WarpOrder& warp = warps_[w];
  for (auto& fenced : warp.common.fenced)
    if (fenced && fenced->self != 0) fenced = std::make_shared<const Fenced>(Fenced{settled(*fenced, w, kFullMask)});
  if (warp.common.copied != 0) warp.common.now.own.add(Grain{async_actor(w), kFullMask, warp.common.copied});
  while (warp.split != 0) {
    const std::shared_ptr<LaneState> group = warp.lane[std::countr_zero(warp.split)];
    Mask members = 0;
    each_lane(warp.split, [&](unsigned l) { members |= warp.lane[l] == group ? Mask{1} << l : 0; });
    learn(warp.common, *group, w, members);
    each_lane(members, [&](unsigned l) { warp.lane[l].reset(); });
    warp.split &= ~members;
  }
}

void BlockOrder::collect(LaneState& meeting, unsigned w, Mask lanes) {
  WarpOrder& warp = warps_[w];
  learn(meeting, warp.common, w, whole_if(lanes, warp.alive));
  Mask rest = lanes & warp.split;
  while (rest != 0) {
    const std::shared_ptr<LaneState>& group = warp.lane[std::countr_zero(rest)];
    Mask members = 0;
    each_lane(rest, [&](unsigned l) { members |= warp.lane[l] == group ? Mask{1} << l : 0; });
    learn(meeting, *group, w, members);
    rest &= ~members;
  }
  meeting.now.own.add(Grain{w, whole_if(lanes, warp.alive), ++warp.clock});
}

void BlockOrder::give(unsigned w, Mask lanes, Mask alive, const LaneState& meeting) {
  each_state(w, lanes, alive, [&](LaneState& state, Mask members) { learn(state, meeting, w, members); });
  warps_[w].warp_floor = warps_[w].common.now.own.upto[w];
}

void BlockOrder::syncwarp(unsigned w, Mask lanes, Mask alive) {
  WarpOrder& warp = warps_[w];
  warp.alive = alive;
  lanes &= alive;
  if ((alive & ~lanes) == 0) {
    fold(w);
    warp.common.now.own.add(Grain{w, kFullMask, ++warp.clock});
    warp.warp_floor = warp.clock;
    return;
  }
  LaneState meeting;
  collect(meeting, w, lanes);
  give(w, lanes, alive, meeting);
}

void BlockOrder::arrive(unsigned w, unsigned barrier, Mask lanes, Mask alive) {
  warps_[w].alive = alive;
  if (!meetings_[barrier]) meetings_[barrier] = std::make_unique<LaneState>();
  collect(*meetings_[barrier], w, lanes);
}

void BlockOrder::release(const BarrierRelease& barrier) {
  bool everyone = !meetings_[barrier.id];
  for (unsigned w = 0; w < warps_.size() && everyone; ++w) everyone = (warps_[w].alive & ~barrier.waited[w]) == 0;
  if (everyone) {
    LaneState meeting;
    Stamp highest = 0;
    for (unsigned w = 0; w < warps_.size(); ++w) {
      fold(w);
      learn(meeting, warps_[w].common, w, kFullMask);
      highest = std::max(highest, warps_[w].clock);
    }
    ++highest;
    for (unsigned w = 0; w < 32; ++w) meeting.now.own.upto[w] = highest;
    std::erase_if(meeting.now.own.grains, [](const Grain& g) { return g.actor < 32; });
    at_barrier_ = meeting.now.own;
    for (WarpOrder& warp : warps_) {
      warp.common = meeting;
      warp.clock = warp.barrier_floor = warp.warp_floor = highest;
    }
    return;
  }
  LaneState meeting;
  if (meetings_[barrier.id]) meeting = std::move(*meetings_[barrier.id]), meetings_[barrier.id].reset();
  for (unsigned w = 0; w < warps_.size(); ++w)
    if (barrier.waited[w] != 0) collect(meeting, w, barrier.waited[w]);
  for (unsigned w = 0; w < warps_.size(); ++w) {
    if (barrier.waited[w] == 0) continue;
    if ((warps_[w].alive & ~barrier.waited[w]) == 0) fold(w);
    give(w, barrier.waited[w], warps_[w].alive, meeting);
  }
}

}  // namespace machine::checks
