// racecheck on global memory: between blocks, and between the threads of a block.
//
// Every byte remembers its last writer and its readers since (pages.hpp). An access that meets another of a different
// thread, of which at least one writes, must come after it by what it knows (order.hpp). Strong accesses (atomics,
// relaxed, volatile) do not race with each other, unless they are block-wide and meet across blocks, or are volatile
// accesses of one warp that trust in lockstep.
#pragma once

#include <cstdint>

#include "observers/order.hpp"
#include "observers/pages.hpp"
#include "observers/race_report.hpp"

namespace machine::checks {

class GlobalRaces {
 public:
  // Without `check` it only marks which bytes were touched.
  GlobalRaces(const LaunchInfo& launch, RaceReport& report, bool check) : launch_(launch), report_(report), check_(check) {}

  // Marks the bytes of an access in pages, nothing more.
  static void mark(const Access& access, const WarpPoint& point, std::uint32_t block, PageMap& pages);
  static void mark_read(std::uint64_t address, std::uint64_t bytes, PageMap& pages);

  // One access of the lanes in `access.lanes`: marks the pages and checks.
  void access(const BlockOrder& order, const WarpPoint& point, const Access& access, PageMap& pages);
  // The source of a cp.async, from its issue on.
  void async_read(const BlockOrder& order, const WarpPoint& point, const Access& source, PageMap& pages);

 private:
  void runs(const BlockOrder& order, unsigned warp, const Access& access, Entry entry, PageMap& pages);
  void run(const BlockOrder& order, unsigned warp, std::uint64_t address, std::uint64_t bytes, Entry entry,
           const Access* access, PageMap& pages);
  void touch(const BlockOrder& order, unsigned warp, Page& page, Line& line, std::uint64_t line_address, const Entry& entry,
             const Access* access);
  void compare(const BlockOrder& order, unsigned warp, const Line& line, std::uint64_t line_address, const Entry& entry,
               const Entry& earlier, const Access* access);
  bool seen_by_chain(const BlockOrder& order, unsigned warp, const Line& line, const Entry& entry, const Entry& earlier,
                     unsigned lane, unsigned byte) const;
  void remember(const BlockOrder& order, unsigned warp, Line& line, const Entry& entry);
  void prune(Line& line, std::uint32_t block);

  const LaunchInfo& launch_;
  RaceReport& report_;
  bool check_;
  std::uint32_t sequence_ = 0;
};

}  // namespace machine::checks
