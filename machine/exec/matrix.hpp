// Fragments of warp-level matrices: where each element of a tile lies among lanes and registers.
#pragma once

#include "collective.hpp"

namespace machine {

// PTX ISA, "Matrix Fragments for mma": group = lane / 4, quad = lane % 4.
inline unsigned group_of(unsigned lane) { return lane >> 2; }
inline unsigned quad_of(unsigned lane) { return lane & 3; }

}  // namespace machine
