// Where the variables of a kernel lie inside its shared and local space.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "object.hpp"

namespace machine {

// Static __shared__ variables are laid out with unowned gaps between them (at least the variable's own size and
// 1 KB, kept a multiple of 128 so that banks do not move), so that an overrun from one variable meets no other. The
// dynamic array comes last. `declared` is what the program asks for, which the limits of an architecture apply to;
// `extent` is what the layout spans.
struct SharedLayout {
  std::vector<Object> variables;  // kind shared, ascending base
  std::uint32_t declared = 0;     // bytes of static shared memory without gaps
  std::uint32_t dynamic_base = 0; // offset of the extern array, aligned to 1024
  std::uint32_t extent = 0;       // bytes including gaps, without the dynamic array
};

// Local arrays of the kernel and of the functions that it calls, by offset in the frame of their function.
struct LocalLayout {
  std::vector<Object> arrays;  // kind local, ascending base
  std::uint32_t bytes = 0;     // of the kernel's own frame; called functions stack theirs above it
};

}  // namespace machine
