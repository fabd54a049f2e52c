// racecheck between stream operations and the host: which operations are ordered, and what each has touched.
//
// An operation comes after the operations that it names, and after what those come after. Two operations of which
// neither comes after the other race when they touch the same byte and one of them writes it, whenever they really ran.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "events/observer.hpp"
#include "observers/id_set.hpp"
#include "observers/pages.hpp"
#include "report/report.hpp"

namespace machine::checks {

// A stretch of memory that the host or a copy engine touched: rows of bytes, pitch apart.
struct TouchedRange {
  std::uint64_t address = 0, bytes = 0, pitch = 0, rows = 1;
  bool writes = false;
  bool host = false;  // the host's own code, not a copy
  // Not touched, but allocated or freed: what else touches it must come after the one and before the other.
  bool begins = false, ends = false;
};

// The first byte that two ranges have in common, row by row of the first.
std::optional<std::uint64_t> common_byte(const TouchedRange& one, const TouchedRange& other);

// What one operation touched.
struct Footprint {
  PageMap pages;         // of a kernel
  PageMap early;         // the part before griddepcontrol.wait, of kernels that have one
  PageMap read_only;     // what it loads by ld.global.nc, of the same kernels
  PageMap constants;     // what it loads by ld.const
  bool waits = false;    // the kernel has a griddepcontrol.wait
  bool settles = false;  // nothing that it let go ahead begins before its own wait is over
  std::vector<TouchedRange> ranges;
  LaunchInfo launch;  // kernel == nullptr: no kernel
};

// A kernel that writes what it loads by ld.const, which is never coherent, whatever orders the two.
std::optional<report::Finding> written_constant(const Footprint& footprint);  // constant_memory.cpp

class Operations {
 public:
  explicit Operations(report::Report& report) : report_(report) {}

  void begin(const Operation& operation);
  void begins_early(std::uint64_t operation) { early_ = operation; }  // before begin() of it
  void touched(std::uint64_t operation, TouchedRange range);
  // An object's memory begins or ends with an operation, which may be one that has yet to begin.
  void lifetime(std::uint64_t operation, const Object& object, bool begins);
  void launched(std::uint64_t operation, Footprint footprint);
  void end(const Operation& operation);

 private:
  struct Known {
    Operation operation;
    IdSet before;  // kept footprints that come before it
    std::unique_ptr<Footprint> footprint;
    std::size_t pages = 0;
    bool settles = false;  // as in Footprint, which may be forgotten
    bool programmatic = false;
  };
  struct Meeting {
    std::uint64_t address = 0;
    bool found = false, here_writes = false, there_writes = false;
    const Trace* here = nullptr;
    const Trace* there = nullptr;
    const TouchedRange* here_range = nullptr;
    const TouchedRange* there_range = nullptr;
  };

  bool ordered(std::uint64_t kept, std::uint64_t id, const Known& known) const {
    return kept == id || known.before.has(kept) || known_.at(kept).before.has(id);
  }
  static bool overlap(const Known& earlier, const Known& later);
  bool settled_between(const Known& earlier, const Known& later) const;
  void compare(const Known& one, const Known& other);
  static void meet(const PageMap& one, const PageMap& other, Meeting& meeting);
  static void meet(const TouchedRange& range, const PageMap& pages, Meeting& meeting);
  static void meet(const TouchedRange& one, const TouchedRange& other, Meeting& meeting);
  void report_race(const Known& one, const Known& other, const Meeting& meeting);
  void report_read_only(const Known& reader, const Known& writer, const Meeting& meeting);
  void keep(std::uint64_t operation);
  void forget_old();

  report::Report& report_;
  std::map<std::uint64_t, Known> known_;
  std::map<std::uint64_t, TouchedRange> allocations_;  // by operations that have not begun
  std::deque<std::uint64_t> kept_;                     // operations with a footprint, oldest first
  std::uint64_t oldest_kept_ = 0;                      // no kept id is smaller
  std::uint64_t early_ = 0;                            // launched programmatically
  std::size_t kept_pages_ = 0;
};

}  // namespace machine::checks
