// racecheck on global memory: between blocks, and between the threads of a block.
//
// Every byte remembers its last writer and its readers since (lines.hpp). An access that meets another of a different
// thread, of which at least one writes, must come after it by what it knows (order.hpp). Strong accesses (atomics,
// relaxed, volatile) do not race with each other, unless they are block-wide and meet across blocks, or are volatile
// accesses of one warp that trust in lockstep.
//
// Where a launch has several chunks, or one block, its blocks run one after another and cannot talk to each other, and
// two shortcuts hold:
//  - of the blocks before, one bit a byte and kind is enough: any conflict with them is a race. It is not described
//    here: the launch is repeated as one chunk, in which every block is remembered exactly.
//  - accesses of the running block are only marked and written down, until one meets a byte that another access of
//    the block has marked and one of the two writes. Then all that was written down is brought into the lines first.
#pragma once

#include <cstdint>

#include "observers/access_log.hpp"
#include "observers/lines.hpp"
#include "observers/locks.hpp"
#include "observers/order.hpp"
#include "observers/pages.hpp"
#include "observers/race_report.hpp"

namespace machine::checks {

class GlobalRaces {
 public:
  // Without `check` it only marks which bytes were touched.
  GlobalRaces(const LaunchInfo& launch, RaceReport& report, PageMap& pages, bool check);

  // Marks the bytes of an access in pages, nothing more.
  static void mark(const Access& access, const WarpPoint& point, std::uint32_t block, PageMap& pages);
  static void mark_as(Touch touch, const Access& access, const WarpPoint& point, std::uint32_t block, PageMap& pages);
  static void mark_read(std::uint64_t address, std::uint64_t bytes, PageMap& pages);

  // One access of the lanes in `access.lanes`: marks the pages and checks. `held`: the critical sections of the block.
  void access(BlockOrder& order, Locks::Held& held, const WarpPoint& point, const Access& access);
  void fence(Locks::Held& held, const BlockOrder& order, unsigned warp, Mask lanes, Scope scope) {
    heard_host_ |= asked_host_ && scope == Scope::sys;
    block_scopes_ |= width_of(scope) == kBlockWide;
    if (!held.empty()) locks_.fence(held, order, warp, lanes, scope);
  }
  // The lanes have released, at that scope, what they know of.
  void released(const BlockOrder& order, unsigned warp, Mask lanes, Scope scope) {
    if (scope == Scope::sys && !exposed_.empty()) publish(order, warp, lanes);
  }
  // The source of a cp.async, or a side of a bulk copy, from its issue on.
  void async_access(const BlockOrder& order, const WarpPoint& point, const Access& access, Touch touch, Stamp stamp,
                    std::uint8_t value_bytes = 0);

  void block_end();
  // After the last block: all that was touched is in the pages, and storage is given back.
  void finish();
  // Whether blocks of this chunk conflict; the launch is to be repeated.
  bool blocks_meet() const { return blocks_meet_; }

 private:
  // What two strong accesses can be guilty of.
  enum class Strong : std::uint8_t {
    nothing,
    race,         // not atomic to each other: of too narrow a scope, of different widths, or trusting in lockstep
    lost_update,  // stores, of which one may be lost
    order,        // volatile ones of two blocks, which may be ordered by what reaches one block only
  };

  void record(const BlockOrder& order, unsigned warp, const Access& access, const Entry& entry);
  bool mark(unsigned warp, const Access& access, const Entry& entry);
  void listen(const Access& access);
  Touch traced(Touch touch) const;
  void expose(Page& page, std::uint64_t first, std::uint64_t count);
  void publish(const BlockOrder& order, unsigned warp, Mask lanes);
  Sheet& sheet_of(Page& page);
  void settle();
  void write_down(const BlockOrder& order, unsigned warp, const Access& access, const Entry& entry);
  void replay(const BlockOrder& order);
  void compare_and_remember(const BlockOrder& order, unsigned warp, const Access& access, Entry entry);
  void run(const BlockOrder& order, unsigned warp, std::uint64_t address, std::uint64_t bytes, Entry entry,
           const Access* access);
  void touch(const BlockOrder& order, unsigned warp, Line& line, std::uint64_t line_address, const Entry& entry,
             const Access* access);
  void compare(const BlockOrder& order, unsigned warp, const Line& line, std::uint64_t line_address, const Entry& entry,
               const Entry& earlier, const Access* access);
  void compare_in_section(const Party& now, const Party& before, const Entry& entry, const Entry& earlier,
                          const BlockOrder& order, std::uint64_t address);
  Strong strong_pair(const Entry& entry, const Entry& earlier, bool own_block);
  bool lost_update(const BlockOrder& order, unsigned warp, const Line& line, const Entry& entry, const Entry& earlier,
                   unsigned lane, unsigned byte);
  void compare_read_only(const BlockOrder& order, unsigned warp, std::uint64_t line_address, const Entry& entry,
                         const Entry& earlier);
  bool seen_since(const BlockOrder& order, unsigned warp, const Line& line, const Entry& earlier, unsigned lane,
                  unsigned byte) const;
  void remember(const BlockOrder& order, unsigned warp, Line& line, const Entry& entry);
  void prune(Line& line, std::uint32_t block);

  const LaunchInfo& launch_;
  RaceReport& report_;
  PageMap& pages_;
  const bool check_;
  const bool apart_;  // blocks run one after another and cannot talk to each other
  bool blocks_meet_ = false;
  bool asked_host_ = false;     // a volatile or relaxed read has looked at system scope
  bool heard_host_ = false;     // and an acquire at that scope has followed: what comes now is in step with the host
  bool reported_ = false;       // something was said of the access at hand
  std::vector<Page*> exposed_;  // memory of the host with writes that no release at system scope has followed
  std::uint32_t sequence_ = 0;
  Locks locks_;
  Locks::Held* held_ = nullptr;  // of the block at hand
  std::uint64_t narrow_ = 0;     // strong accesses of block scope
  bool block_scopes_ = false;    // those, or fences
  AccessLog* log_ = nullptr;     // of the running block, where blocks are apart
  std::vector<Page*> open_;      // pages with a sheet
  std::vector<Sheet*> sheets_;   // blank ones
};

}  // namespace machine::checks
