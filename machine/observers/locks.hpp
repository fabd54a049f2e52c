// Critical sections: from the atomic by which a thread acquires a lock to the one, or the strong store, by which it
// gives the lock back. They show what another order of the blocks would.
//
// In the order that was run, a section comes after those before it, by the fences that those had before they let go,
// and by its own after it acquired the lock. What only the other order needs is looked at here: a fence after acquiring
// the lock by the one that came first, and one before giving it back by the one that came last.
//
// A lock is global memory to which a thread gives another value by a compare-and-swap or an exchange, and later the
// value from before by one of these or a strong store.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "observers/order.hpp"
#include "observers/race_report.hpp"

namespace machine::checks {

class Locks {
 public:
  // An access inside an open section that comes after one of another block inside a section of the same lock.
  struct Pair {
    Party now, before;
    Stamp now_stamp = 0;
    std::uint64_t address = 0;
  };
  struct Open {
    std::uint64_t lock = 0, free = 0;  // address, and value of the lock that nobody holds
    unsigned warp = 0, lane = 0;       // who acquired it
    Stamp stamp = 0;
    std::uint16_t section = 0;
    bool fenced = false;  // a fence of device scope has followed
    std::vector<Pair> pairs;
  };
  using Held = std::vector<Open>;  // of a block

  // Part of an access: the lanes that are inside one section, or in none.
  struct Part {
    Mask lanes = 0;
    std::uint16_t section = 0;
    bool fenced = true;
  };

  // A strong access to global memory, before it happens.
  void strong_access(Held& held, BlockOrder& order, RaceReport& report, const LaunchInfo& launch,
                     const WarpPoint& point, const Access& access);
  void fence(Held& held, const BlockOrder& order, unsigned warp, Mask lanes, Scope scope);

  // The first part of `lanes`.
  static Part part_of(const Held& held, const BlockOrder& order, unsigned warp, Mask lanes);

  // Whether both sections are of one lock, and the first has been left again.
  bool of_one_lock(std::uint16_t left, std::uint16_t other) const {
    return left != 0 && other != 0 && sections_[left].left && sections_[left].lock == sections_[other].lock;
  }
  static void note(Held& held, std::uint16_t section, const Pair& pair);

 private:
  enum class Kind : std::uint8_t { other, compare, exchange };
  Kind kind_of(const LaunchInfo& launch, std::uint32_t pc);
  void give_back(Open& open, BlockOrder& order, RaceReport& report, unsigned warp, unsigned lane, bool release);

  struct Section {
    std::uint64_t lock = 0;
    bool left = false;
  };
  std::vector<Section> sections_{Section{}};
  std::unordered_map<std::uint32_t, Kind> kinds_;  // of atomics, by pc
};

}  // namespace machine::checks
