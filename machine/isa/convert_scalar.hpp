// The conversions between scalars: handlers, and which of them does what.
#pragma once

#include "exec/inst.hpp"
#include "exec/types.hpp"
#include "exec/warp.hpp"

namespace machine {

// Inst::data of the handlers that go lane by lane.
struct Conversion {
  Type to = Type::none, from = Type::none;
  unsigned to_width = 0, from_width = 0;  // of the registers, in bytes
  char rounding = 'n';                    // n z m p a, or of an i-form: the mode that rounds to an integral value
  bool integral = false, flush = false, sat = false, finite = false, relu = false;

  bool exact_widths() const { return bytes_of(to) == to_width && bytes_of(from) == from_width; }
};

// An integer of `from`, in a register of `width` bytes, extended or cut to a register of `to` bytes.
Handler extend_integer(unsigned to, Type from, unsigned width);
const Inst* saturate_integer(const Inst& i, Warp& w, Mask mask);
// Null where lane by lane is what there is. The host's rounding mode must be the conversion's.
Handler float_to_integer(const Conversion& c);
Handler integer_to_float(const Conversion& c);
// Of a 64-bit integer, in the host's mode to nearest.
Handler integer_to_double(bool is_signed_source, char rounding);
Handler float_to_float(const Conversion& c);
Handler to_tf32(const Conversion& c);
// What none of these does. The host's mode is to nearest.
const Inst* convert_lane_by_lane(const Inst& i, Warp& w, Mask mask);

}  // namespace machine
