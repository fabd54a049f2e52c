// printf of a kernel: format and arguments lie in the program's memory.
#pragma once

#include <cstdint>
#include <string>

#include "warp.hpp"

namespace machine {

// A string at a generic address, as lane `lane` sees it; cut at 4096 bytes or where memory ends.
std::string read_string(const Warp& w, std::uint64_t address, unsigned lane);
// Appends what printf would write; returns the number of arguments, or -1 for an unreadable format.
int print_formatted(const Warp& w, std::uint64_t format, std::uint64_t arguments, unsigned lane, std::string& out);

}  // namespace machine
