// Who knows what in a block: releases and acquires.
//
// A fence turns what was seen by strong reads into knowledge, and makes all knowledge ready to be published by the
// strong writes behind it. Block-wide and device-wide fences are kept apart, since the former reach their own block
// only.
#include "observers/order_lanes.hpp"

namespace machine::checks {

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

}  // namespace machine::checks
