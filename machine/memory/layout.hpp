// Where the variables of a kernel lie inside its shared and local space.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "memory/object.hpp"

namespace machine {

// Static __shared__ variables are laid out with unowned gaps between them (at least the variable's own size and
// 1 KB, kept a multiple of 128 so that banks do not move), so that an overrun from one variable meets no other. The
// dynamic array comes last. `declared` is what the program asks for, which the limits of an architecture apply to;
// `extent` is what the layout spans.
struct SharedLayout {
  std::vector<Object> variables;   // kind shared, ascending base
  std::uint32_t declared = 0;      // bytes of static shared memory without gaps
  std::uint32_t dynamic_base = 0;  // offset of the extern array, aligned to 1024
  std::uint32_t extent = 0;        // bytes including gaps, without the dynamic array
};

// Local memory of one function, by offset in its frame. nvcc declares one array for all arrays of the source; `parts`
// are those that the code's own addresses distinguish, and what an instruction may touch when its address comes from
// one alone.
struct LocalLayout {
  struct Use {
    std::uint32_t pc = 0;
    std::uint32_t part = 0;  // index into `parts`
  };
  std::vector<Object> arrays;  // as declared; kind local, ascending base
  std::vector<Object> parts;   // kind local, ascending base
  std::vector<Use> uses;       // ascending pc; an instruction that is not here may touch any array
  std::uint32_t bytes = 0;
};

// What the lanes of one frame have asked for on the stack (alloca), above the frame's own arrays.
struct GrownStack {
  struct Array {
    std::uint32_t lanes = 0;
    std::array<std::uint32_t, 32> base{}, size{};  // offsets in the threads' local space
  };
  std::vector<Array> arrays;
  std::array<std::uint32_t, 32> top{};    // where the lane's next one begins
  std::array<std::uint32_t, 32> taken{};  // bytes of stack
};

// The frame of a running function in local space. Frames of called functions lie above that of their caller, which may
// have passed addresses of its own arrays.
struct LocalFrame {
  const LocalLayout* layout = nullptr;
  const LocalFrame* below = nullptr;  // the caller's
  std::uint32_t base = 0;             // offset in the thread's local space
  std::unique_ptr<GrownStack> grown;
};

}  // namespace machine
