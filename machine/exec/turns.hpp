// Who runs next and for how long: drawn from the seed, and from nothing else.
//
// Seed 0 is the usual schedule: warps and blocks in order, in long turns, which differ a little so that no loop can
// fall in step with them. Every other seed permutes: turns are as likely to be of some few instructions as of thousands
// (log-uniform), and after an instruction that synchronises or talks to other threads a warp gives way often, or
// seldom. Every warp that can run gets a turn in every round, so what ends under a fair scheduler ends.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace machine {

class Turns {
 public:
  // `place`: where in the grid the worker begins, so that chunks differ. `longest`: warp instructions of a turn.
  void begin(std::uint64_t seed, std::uint64_t place, std::uint64_t longest) {
    state_ = scramble(seed ^ scramble(place));
    longest_ = std::max<std::uint64_t>(longest, 2);
    permuted_ = seed != 0;
    static constexpr std::uint64_t kOneIn[] = {2, 8, 64};
    give_way_ = (permuted_ ? kOneIn[next() % std::size(kOneIn)] : 256) - 1;
  }

  bool permuted() const { return permuted_; }
  std::int64_t turn() { return length(longest_); }
  // Of one fragment of a diverged warp: short, so that a lane may spin on another lane of its own warp.
  std::int64_t fragment() { return length(std::min<std::uint64_t>(longest_, 2000)); }
  // Whether a warp's turn ends after the synchronising instruction at hand.
  bool gives_way() { return (next() & give_way_) == 0; }

  template <class T>
  void shuffle(T* items, std::size_t count) {
    for (std::size_t n = count; n > 1; --n) std::swap(items[n - 1], items[next() % n]);
  }

  // The order in which lanes of one atomic take effect: lane (factor * k + shift) mod 32 is the k-th.
  struct LaneOrder {
    std::uint32_t factor = 1, shift = 0;
    unsigned lane(unsigned k) const { return (factor * k + shift) & 31; }
  };
  LaneOrder lanes() {
    const auto drawn = static_cast<std::uint32_t>(next());
    return {drawn | 1, drawn >> 16};
  }

 private:
  static std::uint64_t scramble(std::uint64_t v) {  // SplitMix64
    v += 0x9e3779b97f4a7c15u;
    v = (v ^ (v >> 30)) * 0xbf58476d1ce4e5b9u;
    v = (v ^ (v >> 27)) * 0x94d049bb133111ebu;
    return v ^ (v >> 31);
  }
  std::uint64_t next() {
    state_ += 0x9e3779b97f4a7c15u;
    return scramble(state_);
  }
  std::int64_t length(std::uint64_t longest) {
    if (!permuted_) return static_cast<std::int64_t>(longest - next() % (longest / 2));
    const std::uint64_t low = std::uint64_t{1} << next() % static_cast<unsigned>(std::bit_width(longest));
    return static_cast<std::int64_t>(std::min(longest, low + (next() & (low - 1))));
  }

  std::uint64_t state_ = 0, longest_ = 20'000, give_way_ = 255;
  bool permuted_ = false;
};

}  // namespace machine
