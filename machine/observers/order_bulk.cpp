// The part of bulk copies in the order of a block: what completes them, and what fences of their proxy carry.
//
// Each mbarrier, and each thread's groups, is a source of completions with a count; a copy is complete for whoever
// knows the count that its bytes fell in.
#include "observers/order.hpp"

namespace machine::checks {

// What a fence has seen is what its thread knows, and what it did itself.
void BlockOrder::proxy_fence(unsigned w, Mask lanes, Mask alive) {
  const Stamp self = ++warps_[w].clock;
  const LaneState common = warps_[w].common;
  each_state(w, lanes, alive, [&](LaneState& state, Mask members) {
    auto seen = std::make_shared<Reach>(state.now.own);
    seen->join(common.now.own);
    seen->proxied.reset();
    seen->completions.clear();
    seen->add(Grain{w, members, self});
    if (const Stamp copied = std::max(state.copied, common.copied); copied != 0)
      seen->add(Grain{async_actor(w), members, copied});
    state.now.own.proxied = std::move(seen);
  });
}

std::uint32_t BlockOrder::mbarrier_source(std::uint64_t address) {
  constexpr std::uint32_t kFirst = 1u << 16;  // above those of threads
  const auto [at, fresh] = mbarrier_sources_.try_emplace(address, kFirst + sources_);
  if (fresh) ++sources_;
  return at->second;
}

void BlockOrder::bulk_completed(std::uint64_t mbarrier, std::uint64_t phase, unsigned w, unsigned lane,
                                const Knowledge& known) {
  Knowledge& carried = phases_[mbarrier][phase];
  carried.join(known);
  carried.own.add(Grain{async_actor(w), Mask{1} << lane, ++warps_[w].async_clock});
}

void BlockOrder::bulk_waited(unsigned w, unsigned lane, Mask alive, const Completion& completion) {
  each_state(w, Mask{1} << lane, alive, [&](LaneState& state, Mask) { state.now.own.add(completion); });
}

void BlockOrder::bulk_written(unsigned w, unsigned lane, Mask alive, Stamp upto) {
  each_state(w, Mask{1} << lane, alive,
             [&](LaneState& state, Mask) { state.now.own.add(Grain{async_actor(w), Mask{1} << lane, upto}); });
}

bool BlockOrder::complete(unsigned w, unsigned lane, const Completion& c) const {
  const WarpOrder& warp = warps_[w];
  return warp.common.now.own.complete(c) || ((warp.split >> lane & 1) != 0 && warp.lane[lane]->now.own.complete(c));
}

bool BlockOrder::proxied(unsigned w, unsigned lane, unsigned actor, unsigned by_lane, Stamp stamp) const {
  if (stamp < start_) return true;
  const WarpOrder& warp = warps_[w];
  const auto covers = [&](const LaneState& state) {
    return state.now.own.proxied && state.now.own.proxied->covers(actor, by_lane, stamp);
  };
  return covers(warp.common) || ((warp.split >> lane & 1) != 0 && covers(*warp.lane[lane]));
}

}  // namespace machine::checks
