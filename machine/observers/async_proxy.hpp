// racecheck of bulk copies on the shared memory of one block: against the generic proxy's accesses, and each other.
//
// A copy touches its bytes from its issue until the thread that looks knows it complete: by a wait on its mbarrier for
// the phase that its bytes counted in, or by its thread's wait for its bulk group, and whatever orders others behind
// those. What threads wrote through the generic proxy it finds only behind a fence.proxy.async; completion is such a
// fence by itself.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "events/observer.hpp"
#include "observers/order.hpp"
#include "observers/race_report.hpp"
#include "observers/race_shared.hpp"

namespace machine::checks {

class AsyncProxy {
 public:
  void begin(const BlockInfo& block);
  // Its accesses to global memory are given the stamp that is returned.
  Stamp issue(BlockOrder& order, SharedRaces& shared, RaceReport& report, const BulkCopy& copy);
  void land(BlockOrder& order, const BulkCopy& copy, std::uint64_t phase);
  void commit(BlockOrder& order, const WarpPoint& point);
  void wait(BlockOrder& order, const WarpPoint& point, std::uint32_t groups_left, bool read);
  // An access through the generic proxy to shared memory.
  void access(const BlockOrder& order, const SharedRaces& shared, RaceReport& report, const WarpPoint& point,
              const Access& access);

 private:
  static constexpr Stamp kOpen = ~Stamp{0};
  struct Copy {
    std::uint32_t pc = 0;
    std::uint8_t warp = 0, lane = 0;
    bool reduces = false;
    bool waits_for_group = false;
    Completion done{0, kOpen};  // what completes it: nothing, while it is in flight
    Knowledge known;            // at its issue; empty once it has landed
  };
  // The last copies that wrote and read 4 bytes, as their numbers in the slot; below first_ nobody in this block.
  struct Cell {
    std::uint32_t writer = 0, reader = 0;
  };
  struct Closed {
    std::uint32_t groups = 0;
    std::vector<Stamp> upto;  // by group: stamps of the copies in it and before lie below
  };

  Copy& copy_of(std::uint32_t number) { return copies_[number - first_]; }
  const Copy& copy_of(std::uint32_t number) const { return copies_[number - first_]; }
  bool complete(const BlockOrder& order, unsigned warp, unsigned lane, const Copy& copy) const {
    return copy.done.upto != kOpen && order.complete(warp, lane, copy.done);
  }
  Party party(const BlockOrder& order, const Copy& copy, bool wrote) const;
  void judge(const BlockOrder& order, const SharedRaces& shared, RaceReport& report, const Party& now,
             std::uint32_t number, bool wrote, std::uint64_t address) const;
  template <class F>
  void each_cell(std::uint64_t address, std::uint64_t bytes, F&& f);

  std::uint64_t base_ = 0;
  std::uint32_t first_ = 1;  // number of the block's first copy
  std::vector<Copy> copies_;
  std::vector<Cell> cells_;
  std::unordered_map<std::uint32_t, Closed> closed_;  // by thread
};

}  // namespace machine::checks
