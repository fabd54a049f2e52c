// What a reduction makes of two floating-point values, as bits: of memory, then of the operand.
#pragma once

#include <cstdint>

#include "exec/real.hpp"

namespace machine {

// On global memory additions of f32 flush subnormals, and on shared memory they do not.
template <bool Flush>
std::uint32_t add_f32(std::uint32_t a, std::uint32_t b) {
  const float x = float_of(a), y = float_of(b);
  return bits_of(Flush ? flushed(canonical(flushed(x) + flushed(y))) : canonical(x + y));
}

// NaN pass as they are, the operand's first.
inline std::uint64_t add_f64(std::uint64_t a, std::uint64_t b) {
  const double x = double_of(a), y = double_of(b);
  return y != y ? b : x != x ? a : bits_of(x + y);
}

template <class H>
std::uint16_t add_half(std::uint16_t a, std::uint16_t b) {
  return H::narrow(H::widen(a) + H::widen(b));
}

template <class H, bool Max>
std::uint16_t choose_half(std::uint16_t a, std::uint16_t b) {
  const float x = H::widen(a), y = H::widen(b);
  if (x != x) return y != y ? kNan16 : b;
  if (y != y) return a;
  const bool first = Max ? (x > y || (x == y && !(a & 0x8000))) : (x < y || (x == y && (a & 0x8000)));
  return first ? a : b;
}

}  // namespace machine
