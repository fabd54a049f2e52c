// printf of a kernel: format and arguments lie in the program's memory.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "exec/warp.hpp"

namespace machine {

// A string at a generic address, as lane `lane` sees it; cut at 4096 bytes or where memory ends.
std::string read_string(const Warp& w, std::uint64_t address, unsigned lane);
// An argument that was printed: where it lies from the first one on, and how many of its bytes count.
struct PrintedArgument {
  std::uint64_t offset;
  unsigned bytes;
};
// A string that was printed, from a generic address on; `bytes` without its end.
struct PrintedString {
  std::uint64_t address;
  std::uint64_t bytes;
};
struct Printed {
  std::vector<PrintedArgument> arguments;
  std::vector<PrintedString> strings;
};
// Appends what printf would write; returns the number of arguments, or -1 for an unreadable format.
int print_formatted(const Warp& w, std::uint64_t format, std::uint64_t arguments, unsigned lane, std::string& out,
                    Printed& printed);

}  // namespace machine
