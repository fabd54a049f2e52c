// One fault, as every check reports it: what, where, how often. Plain data.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "exec/machine.hpp"

namespace machine::report {

enum class Level : std::uint8_t { error, warning };

// One place in a kernel, seen from one thread.
struct Site {
  std::string kernel;  // demangled name with its template arguments; "" for the host
  std::string host;    // for the host's own accesses: "cudaMemcpyAsync", "host program"
  Location location;   // source lines, innermost first, and the PTX text
  bool has_thread = false;
  Dim3 block{0, 0, 0}, thread{0, 0, 0};

  bool in_kernel() const { return !kernel.empty(); }
};

// kind is short and stable ("Invalid __shared__ read of size 4 bytes"), message is one sentence with the facts of this
// fault, remedy one sentence that says what would mend it. sites[0] is where it happened; a race has two.
struct Finding {
  std::string check;  // memcheck, initcheck, racecheck, synccheck, api
  Level level = Level::error;
  std::string kind;
  std::string message;
  std::string remedy;
  std::string address;  // "buffer + 128 (0x...)", "" when there is none
  std::vector<Site> sites;
  std::uint64_t count = 1;  // how many accesses of a thread showed the same fault at the same sites
  // Of a race. `family`: findings of one family at the same two lines are one, the gravest, and of two that are as
  // grave the one whose threads are furthest apart, since its remedy mends both. `subject`: the variable, "" when it is
  // not known; races on one of which each shares a line with another one are reported as one, with the other pairs of
  // lines named.
  std::string family;
  std::string subject;
  std::uint8_t apart = 0;         // 0: one thread, 1: one warp, 2: one block, 3: the grid
  std::vector<std::string> also;  // "12 and 14 in softmax.cu": other pairs of lines
};

// Two findings at the same site are one: same check, kind and source lines. A race is one whichever of its two lines
// the schedule ran first, and however often a loop was unrolled.
std::string site_key(const Finding& finding);

// The message, with the other pairs of lines.
std::string told(const Finding& finding);

}  // namespace machine::report
