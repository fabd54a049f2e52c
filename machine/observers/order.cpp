#include "observers/order.hpp"

#include <bit>

namespace machine::checks {

namespace {

template <class T>
void join_shared(std::shared_ptr<const T>& into, const std::shared_ptr<const T>& from) {
  if (!from || into == from) return;
  if (!into) return void(into = from);
  auto joined = std::make_shared<T>(*into);
  joined->join(*from);
  into = std::move(joined);
}

// What a fence made ready, seen from outside the lanes that made it: their own accesses become part of it.
Knowledge settled(const Fenced& fenced, unsigned w, Mask lanes) {
  Knowledge known = fenced.known;
  if (fenced.self != 0) known.own.add(Grain{w, lanes, fenced.self});
  if (fenced.copied != 0) known.own.add(Grain{async_actor(w), lanes, fenced.copied});
  return known;
}

template <class F>
void each_lane(Mask lanes, F&& f) {
  for (; lanes != 0; lanes &= lanes - 1) f(static_cast<unsigned>(std::countr_zero(lanes)));
}

// A grain of all living lanes stands for the warp: what exited lanes did before is done.
Mask whole_if(Mask lanes, Mask alive) { return (alive & ~lanes) == 0 ? kFullMask : lanes; }

}  // namespace

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

LaneState BlockOrder::effective(unsigned w, unsigned lane) const {
  const WarpOrder& warp = warps_[w];
  LaneState state = warp.common;
  if ((warp.split >> lane & 1) == 0) return state;
  const LaneState& own = *warp.lane[lane];
  state.now.join(own.now);
  state.copied = std::max(state.copied, own.copied);
  join_shared(state.observed, own.observed);
  join_shared(state.narrow, own.narrow);
  for (unsigned width = 0; width < 2; ++width)
    if (own.fenced[width]) {
      Fenced joined = *own.fenced[width];
      if (state.fenced[width]) {
        joined.known.join(state.fenced[width]->known);
        joined.self = std::max(joined.self, state.fenced[width]->self);
        joined.copied = std::max(joined.copied, state.fenced[width]->copied);
      }
      state.fenced[width] = std::make_shared<const Fenced>(std::move(joined));
    }
  return state;
}

void BlockOrder::fence(unsigned w, Mask lanes, Mask alive, Scope scope) {
  const Stamp self = ++warps_[w].clock;
  const LaneState common = warps_[w].common;
  const bool wide = width_of(scope) == kDeviceWide;
  each_state(w, lanes, alive, [&](LaneState& state, Mask) {
    // A lane's own state adds to the common one; what is fenced is both.
    const auto acquire = [&](const std::shared_ptr<const Knowledge>& seen) {
      if (seen) state.now.join(*seen);
    };
    acquire(common.observed), acquire(state.observed);
    state.observed.reset();
    if (wide) {
      acquire(common.far), acquire(state.far), acquire(common.halfway), acquire(state.halfway);
      state.halfway.reset();
    } else {
      join_shared(state.halfway, common.far), join_shared(state.halfway, state.far);
    }
    state.far.reset();
    Knowledge known = state.now;
    known.join(common.now);
    auto fenced = std::make_shared<const Fenced>(Fenced{std::move(known), self, std::max(state.copied, common.copied)});
    state.fenced[kBlockWide] = fenced;
    if (wide) state.fenced[kDeviceWide] = fenced;
  });
  warps_[w].warp_floor = warps_[w].common.now.own.upto[w];
}

bool BlockOrder::has_fenced(unsigned w, Mask lanes) const {
  const WarpOrder& warp = warps_[w];
  if (warp.common.fenced[kBlockWide]) return true;
  bool any = false;
  each_lane(lanes & warp.split, [&](unsigned l) { any |= warp.lane[l]->fenced[kBlockWide] != nullptr; });
  return any;
}

BlocksPtr BlockOrder::publication(unsigned w, unsigned lane, bool release, Width width) {
  const LaneState state = effective(w, lane);
  if (release) {
    Knowledge known = state.now;
    known.own.add(Grain{w, Mask{1} << lane, warps_[w].clock + 1});
    if (state.copied != 0) known.own.add(Grain{async_actor(w), Mask{1} << lane, state.copied});
    return known.published(block_);
  }
  if (!state.fenced[width]) return nullptr;
  return settled(*state.fenced[width], w, Mask{1} << lane).published(block_);
}

void BlockOrder::observe(unsigned w, Mask lanes, const BlocksPtr& seen, bool acquire, Source source) {
  if (!seen) return;
  each_state(w, lanes, warps_[w].alive, [&](LaneState& state, Mask) {
    if (acquire && source != Source::out_of_reach) {
      if (state.learned == seen) return;
      state.learned = seen;
      return state.now.learn(seen, block_);
    }
    auto& place = source == Source::own_block     ? state.observed
                  : source == Source::other_block ? state.far
                                                  : state.narrow;
    Knowledge known = place ? *place : Knowledge{};
    known.learn(seen, block_);
    place = std::make_shared<const Knowledge>(std::move(known));
  });
  warps_[w].warp_floor = warps_[w].common.now.own.upto[w];
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
      phase.join(warp.common.now);
      Stamp copied = warp.common.copied;
      each_lane(same & warp.split, [&](unsigned l) {
        phase.join(warp.lane[l]->now);
        if (warp.lane[l]->copied > copied) phase.own.add(Grain{async_actor(w), Mask{1} << l, warp.lane[l]->copied});
      });
      if (copied != 0) phase.own.add(Grain{async_actor(w), whole_if(same, alive), copied});
      phase.own.add(Grain{w, whole_if(same, alive), own});
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
