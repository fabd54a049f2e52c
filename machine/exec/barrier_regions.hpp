// Which block barriers a thread passes by when it takes a branch.
#pragma once

#include <cstdint>
#include <vector>

#include "exec/inst.hpp"

namespace machine {

// What lies on one side of a branch and not on the other: barriers of the whole block and calls of functions with some,
// by statement, before the place where both sides meet again. A thread that takes the other side passes them by.
struct BarrierRegion {
  std::vector<std::uint32_t> barriers;
  bool past_when_taken = false;  // the branch that is taken leads past them
  std::vector<bool> past_at;     // of an indexed branch: these indices do
};

// Of a branch or barrier that was given one.
inline const BarrierRegion& region_at(const Inst& i) { return *reinterpret_cast<const BarrierRegion*>(i.imm); }

// The basic blocks of a function, in the order of their text.
struct FlowGraph {
  struct Block {
    std::vector<std::uint32_t> next;
    std::vector<std::uint32_t> barriers;  // statements
    bool ends = false;                    // threads may end in it
    bool only_ends = false;               // and nothing else happens in it
  };
  std::vector<Block> blocks;

  // A block's number, one past the last for the end of the thread, or kNever where no path leads to that.
  static constexpr std::uint32_t kNever = ~std::uint32_t{0};
  std::uint32_t end() const { return static_cast<std::uint32_t>(blocks.size()); }
  // The first block behind each block that every thread reaches, whichever path it takes.
  std::vector<std::uint32_t> meeting_points() const;
  // Whether threads that meet there have anything left to do.
  bool meet_in_life(std::uint32_t meeting) const;
  // The barriers on the paths from block `from` to block `to`, in ascending order.
  std::vector<std::uint32_t> barriers_between(std::uint32_t from, std::uint32_t to) const;
};

// The region of a branch in a block that goes to `taken` or to `next`; no barriers where it passes none by. An early
// return passes none by: its sides meet again only in the end of the thread, and threads that have ended are not waited
// for.
BarrierRegion region_of(const FlowGraph& graph, std::uint32_t meeting, std::uint32_t taken, std::uint32_t next);
// The same for an indexed branch that goes to one of `targets`.
BarrierRegion region_of(const FlowGraph& graph, std::uint32_t meeting, const std::vector<std::uint32_t>& targets);

}  // namespace machine
