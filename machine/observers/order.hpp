// Who knows what inside one block: clocks moved on and joined by barriers, fences, atomics and async waits.
//
// Rules (PTX memory model, chapter "Memory Consistency Model" of the PTX ISA, read leniently where programs are):
//  - block barriers and __syncwarp order everything before them by the lanes that arrived, before everything after by
//    the lanes that waited. A barrier hands fences on too: a fence before it counts for the thread that releases after
//    it.
//  - a release is a fence, then a strong write or atomic by the same thread or by one ordered after it by a barrier;
//    or a strong write with .release. It carries all that the releasing thread knows (fences are cumulative).
//  - an acquire is a strong read or atomic, then a fence; or a strong read with .acquire. What was seen without a
//    fence is remembered apart: an access that only that orders is a warning, not an error.
//  - a fence or an atomic of block scope reaches its own block only, on either side: what another block has released, a
//    fence of block scope does not acquire.
//  - shuffles, votes and the like order no memory, but what a lane read before one that the whole warp took part in, it
//    has read when the others go on: a write that only this orders is a warning.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "events/observer.hpp"
#include "observers/reach.hpp"

namespace machine::checks {

enum class Relation : std::uint8_t {
  ordered,
  one_sided,  // ordered but for the reader's fence
  narrow,     // released or acquired at a scope that does not reach the other side
  met,        // of two lanes of a warp, with a collective of the whole warp between them
  unordered,
};

// What a fence has made ready for a release: what the thread knew, its own accesses up to `self`, its own async copies
// up to `copied`.
struct Fenced {
  Knowledge known;
  Stamp self = 0, copied = 0;
};

enum Width : unsigned { kBlockWide = 0, kDeviceWide = 1 };
inline Width width_of(Scope scope) { return scope == Scope::gpu || scope == Scope::sys ? kDeviceWide : kBlockWide; }

struct LaneState {
  Knowledge now;
  Stamp copied = 0;   // the lane's own async copies with a stamp below are waited for
  BlocksPtr learned;  // the last that became part of `now`: a lane that polls sees the same again and again
  // Seen by strong reads, with no fence since: what the own block has released, and what others have, which takes a
  // fence of device scope. One of block scope makes `halfway` of it.
  std::shared_ptr<const Knowledge> observed, far, halfway;
  std::shared_ptr<const Knowledge> narrow;              // seen at a scope that does not reach this thread
  std::array<std::shared_ptr<const Fenced>, 2> fenced;  // by Width

  void begin(Stamp start);
};

// Who released what a strong read sees, and whether that reaches the reader.
enum class Source : std::uint8_t { own_block, other_block, out_of_reach };

class BlockOrder {
 public:
  struct WarpOrder {
    Stamp clock = 1;          // stamp of the accesses made now
    Stamp barrier_floor = 1;  // every access of the block with a stamp below is known
    Stamp warp_floor = 1;     // every access of the own warp with a stamp below is known
    Stamp async_clock = 1;    // stamp of the async copies issued now
    Stamp met = 1;            // accesses of the warp with a stamp below came before its last collective of all lanes
    Mask alive = 0;
    Mask split = 0;  // lanes that know more than the warp in common
    LaneState common;
    std::array<std::shared_ptr<LaneState>, 32> lane;
    struct Commit {
      Mask lanes;
      Stamp upto;
    };
    std::vector<Commit> commits;

    void begin(Stamp start, Mask lanes);
  };

  // A new block in this slot; clocks go on, so that what an earlier block left in a shadow lies in the past.
  void begin(std::uint32_t block, unsigned warps, std::uint32_t threads);

  std::uint32_t block() const { return block_; }
  unsigned warps() const { return static_cast<unsigned>(warps_.size()); }
  const WarpOrder& warp(unsigned w) const { return warps_[w]; }
  Stamp highest() const;
  // What every thread of the block knew at the last barrier of all.
  const Reach& at_barrier() const { return at_barrier_; }

  // Whether an access by lane `lane` of warp `w` made now comes after a recorded one.
  bool ordered(unsigned w, unsigned lane, unsigned actor, unsigned by_lane, Stamp stamp) const;
  Relation relation(unsigned w, unsigned lane, std::uint32_t block, unsigned actor, unsigned by_lane,
                    Stamp stamp) const;

  void syncwarp(unsigned w, Mask lanes, Mask alive);
  void meet(unsigned w, Mask lanes, Mask alive) {  // a collective that orders no memory
    if ((alive & ~lanes) == 0) warps_[w].met = ++warps_[w].clock;
  }
  void arrive(unsigned w, unsigned barrier, Mask lanes, Mask alive);  // bar.arrive: does not wait
  void release(const BarrierRelease& barrier);
  void exit(unsigned w, Mask lanes) { warps_[w].alive &= ~lanes; }
  void fence(unsigned w, Mask lanes, Mask alive, Scope scope);

  // What a strong write by `lane` carries to those who see it at `width`; nullptr: nothing.
  BlocksPtr publication(unsigned w, unsigned lane, bool release, Width width);
  bool has_fenced(unsigned w, Mask lanes) const;
  // After a release: later accesses are not part of it.
  void step(unsigned w) { ++warps_[w].clock; }
  void observe(unsigned w, Mask lanes, const BlocksPtr& seen, bool acquire, Source source);

  void mbarrier(unsigned w, Mask alive, const MbarrierEvent& event);

  // Bulk copies: what completes them is a source of completions of its own.
  void proxy_fence(unsigned w, Mask lanes, Mask alive);
  std::uint32_t mbarrier_source(std::uint64_t address);
  Knowledge knowledge(unsigned w, unsigned lane) const { return effective(w, lane).now; }
  // A copy that `known` was known at the issue of is complete in a phase of an mbarrier.
  void bulk_completed(std::uint64_t mbarrier, std::uint64_t phase, unsigned w, unsigned lane, const Knowledge& known);
  // The lane has waited: for a source of completions, or for the accesses to global memory of its copies.
  void bulk_waited(unsigned w, unsigned lane, Mask alive, const Completion& completion);
  void bulk_written(unsigned w, unsigned lane, Mask alive, Stamp upto);
  bool complete(unsigned w, unsigned lane, const Completion& c) const;
  // Whether a bulk copy that the lane issues now finds what an access through the generic proxy left.
  bool proxied(unsigned w, unsigned lane, unsigned actor, unsigned by_lane, Stamp stamp) const;
  Stamp start() const { return start_; }
  Stamp next_copy(unsigned w) { return warps_[w].async_clock++; }

  Stamp async_stamp(unsigned w) const { return warps_[w].async_clock; }
  void async_commit(unsigned w, Mask lanes);
  void async_wait(unsigned w, Mask lanes, Mask alive, std::uint32_t groups_left);
  void async_landed(unsigned w, Mask lanes, Mask alive, Stamp stamp);

 private:
  template <class F>
  void each_state(unsigned w, Mask lanes, Mask alive, F&& f);
  LaneState effective(unsigned w, unsigned lane) const;
  void bring(Knowledge& phase, unsigned warp, Mask lanes, Mask alive, Stamp own) const;
  void learn(LaneState& into, const LaneState& from, unsigned w, Mask lanes) const;
  void fold(unsigned w);
  void collect(LaneState& meeting, unsigned w, Mask lanes);
  void give(unsigned w, Mask lanes, Mask alive, const LaneState& meeting);

  std::uint32_t block_ = 0;
  Stamp start_ = 0;  // no access of this block has a smaller one
  std::uint32_t sources_ = 0;
  std::unordered_map<std::uint64_t, std::uint32_t> mbarrier_sources_;  // of the mbarriers that bulk copies complete on
  Reach at_barrier_;
  std::vector<WarpOrder> warps_;
  std::array<std::unique_ptr<LaneState>, 16> meetings_;  // what bar.arrive left at a barrier
  std::unordered_map<std::uint64_t, std::unordered_map<std::uint64_t, Knowledge>> phases_;
};

// Calls f(state, lanes of it) so that every lane in `lanes`, and no other, is affected.
template <class F>
void BlockOrder::each_state(unsigned w, Mask lanes, Mask alive, F&& f) {
  WarpOrder& warp = warps_[w];
  warp.alive = alive;
  const bool all = (alive & ~lanes) == 0;
  if (all) f(warp.common, kFullMask);
  Mask rest = all ? warp.split : lanes;
  if (const Mask plain = rest & ~warp.split; plain != 0) {
    auto own = std::make_shared<LaneState>();
    f(*own, plain);
    for (Mask l = plain; l != 0; l &= l - 1) warp.lane[std::countr_zero(l)] = own;
    rest &= ~plain;
    warp.split |= plain;
  }
  while (rest != 0) {
    const std::shared_ptr<LaneState> group = warp.lane[std::countr_zero(rest)];
    Mask members = 0;
    for (Mask l = warp.split; l != 0; l &= l - 1) members |= warp.lane[std::countr_zero(l)] == group ? l & -l : 0;
    const Mask inside = members & rest;
    std::shared_ptr<LaneState> state = group;
    if (inside != members) {
      state = std::make_shared<LaneState>(*group);
      for (Mask l = inside; l != 0; l &= l - 1) warp.lane[std::countr_zero(l)] = state;
    }
    f(*state, inside);
    rest &= ~inside;
  }
}

}  // namespace machine::checks
