// What strong accesses hand over: the releases that each location holds, and who may learn of them.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "observers/order.hpp"

namespace machine::checks {

class StrongLocations {
 public:
  // A strong access of the lanes in `access`: observes, then publishes, lane by lane.
  void access(BlockOrder& order, const WarpPoint& point, const Access& access);
  // Shared memory of a block that ended; its storage is used again.
  void forget(std::uint64_t base, std::uint64_t bytes);

 private:
  struct Location {
    BlocksPtr wide;                                           // released at device scope
    std::vector<std::pair<std::uint32_t, BlocksPtr>> narrow;  // at block scope, by the releasing block
  };
  void observe(BlockOrder& order, unsigned warp, Mask lanes, const Location& from, bool acquire, Width width);

  std::unordered_map<std::uint64_t, Location> locations_;
};

}  // namespace machine::checks
