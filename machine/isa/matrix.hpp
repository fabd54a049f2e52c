// Fragments of warp-level matrices: where each element of a tile lies among lanes and registers.
#pragma once

#include <cmath>

#include "exec/collective.hpp"
#include "exec/real.hpp"

namespace machine {

// PTX ISA, "Matrix Fragments for mma": group = lane / 4, quad = lane % 4.
inline unsigned group_of(unsigned lane) { return lane >> 2; }
inline unsigned quad_of(unsigned lane) { return lane & 3; }

// One rounding to f32, towards zero; beyond the largest number as rounding to nearest.
inline float truncated(double v) {
  const float f = static_cast<float>(v);
  if (std::fabs(static_cast<double>(f)) > std::fabs(v) && std::isfinite(f)) return float_of(bits_of(f) - 1);
  return f;
}

// D = A * B + C of m16n8k16 with f32 sums, for a whole warp: the slots of each operand's registers.
void multiply_halves(const Warp& w, const Slot* d, const Slot* a, const Slot* b, const Slot* c);
void multiply_bfloats(const Warp& w, const Slot* d, const Slot* a, const Slot* b, const Slot* c);

}  // namespace machine
