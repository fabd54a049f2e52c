// The forms of cvt between scalars. Packed ones are in convert_packed.cpp.
#include "isa/convert.hpp"
#include "isa/convert_scalar.hpp"
#include "isa/families.hpp"

namespace machine {
namespace {

// cvt at hand: what it converts, the registers, and which rounding it names.
struct Cvt {
  Conversion form;
  int integer_mode = -1, float_mode = -1;
  Slot source = 0, destination = 0;

  void emit(Decoder& d, Handler handler) const {
    Inst& i = d.emit(handler);
    i.a = source, i.d = destination;
    i.data = d.keep_value(form);
  }
};

void tf32(Decoder& d, Cvt& c) {
  const Conversion& f = c.form;
  const bool rounds = c.float_mode >= 0 && c.float_mode != 2 && c.float_mode != 3;
  if (f.from != Type::f32 || c.integer_mode >= 0 || !rounds || f.flush || f.sat) d.fail("no such conversion");
  d.end(2);
  c.source = d.source(1, Type::f32), c.destination = d.destination(0, Type::b32);
  c.emit(d, to_tf32(f));
}

void integers(Decoder& d, const Cvt& c) {
  const Conversion& f = c.form;
  if (c.integer_mode >= 0 || c.float_mode >= 0 || f.flush) d.fail("integers take no rounding mode and no .ftz");
  if (f.sat) return c.emit(d, saturate_integer);
  if (bytes_of(f.to) == f.to_width) return c.emit(d, extend_integer(f.to_width, f.from, f.from_width));
  // The register is wider than the result: the result's own type decides how it is extended.
  if (bytes_of(f.to) <= bytes_of(f.from)) return c.emit(d, extend_integer(f.to_width, f.to, f.from_width));
  const unsigned width = std::max(bytes_of(f.to), 2u);
  const Slot middle = d.scratch(width);
  Inst& first = d.emit(extend_integer(width, f.from, f.from_width));
  first.a = c.source, first.d = middle;
  Inst& second = d.emit(extend_integer(f.to_width, f.to, width));
  second.a = middle, second.d = c.destination;
}

void to_integer(Decoder& d, const Cvt& c) {
  if (c.integer_mode < 0) d.fail("needs .rni, .rzi, .rmi or .rpi");
  const Handler fast = float_to_integer(c.form);
  d.need_mode({false, fast != nullptr ? c.form.rounding : 'n'});
  c.emit(d, fast != nullptr ? fast : convert_lane_by_lane);
}

void from_integer(Decoder& d, const Cvt& c) {
  const Conversion& f = c.form;
  if (c.float_mode < 0) d.fail("needs .rn, .rz, .rm or .rp");
  if (const Handler fast = integer_to_float(f)) {
    d.need_mode({false, f.rounding});
    return c.emit(d, fast);
  }
  d.need_mode({false, 'n'});
  const bool wide = f.to == Type::f64 && bytes_of(f.from) == 8 && !f.sat;
  c.emit(d, wide ? integer_to_double(f.from == Type::s64, f.rounding) : convert_lane_by_lane);
}

// The host's mode for a conversion between floats that has a handler of its own. None: any will do.
std::optional<Mode> mode_of(const Conversion& f) {
  if (f.from == Type::bf16 || f.to == Type::bf16) return std::nullopt;
  if (f.to == Type::f64) return Mode{f.flush, 'n'};
  if (f.from == Type::f64) return Mode{f.flush, f.rounding};
  return Mode{false, f.integral ? f.rounding : 'n'};
}

void floats(Decoder& d, const Cvt& c) {
  const Conversion& f = c.form;
  if (bytes_of(f.from) != f.from_width) d.fail("the source register is wider than its type");
  const bool same = f.from == f.to;
  if (same && c.float_mode >= 0) d.fail("a rounding mode needs a narrower result");
  // ptxas accepts .rni and the like only between equal types.
  if (!same && f.integral) d.fail("rounding to an integral value needs equal types");
  const bool widens = bytes_of(f.to) > bytes_of(f.from);
  if (!same && !widens && c.float_mode < 0) d.fail("needs a rounding mode");
  if (f.flush && f.from != Type::f32 && f.to != Type::f32) d.fail(".ftz needs .f32");
  const Handler fast = float_to_float(f);
  if (const auto mode = fast != nullptr ? mode_of(f) : Mode{false, 'n'}) d.need_mode(*mode);
  c.emit(d, fast != nullptr ? fast : convert_lane_by_lane);
}

}  // namespace

void decode_convert(Decoder& d) {
  if (decode_convert_packed(d)) return;
  Cvt c;
  Conversion& f = c.form;
  c.integer_mode = d.accept_one({"rni", "rzi", "rmi", "rpi"});
  c.float_mode = d.accept_one({"rn", "rz", "rm", "rp", "rna"});
  f.flush = d.flush();
  f.sat = d.accept("sat");
  f.finite = d.accept("satfinite");
  f.relu = d.accept("relu");
  if (c.integer_mode >= 0 && c.float_mode >= 0) d.fail("two rounding modes");
  f.integral = c.integer_mode >= 0;
  f.rounding = c.integer_mode >= 0 ? "nzmp"[c.integer_mode] : c.float_mode >= 0 ? "nzmpa"[c.float_mode] : 'n';
  f.to = d.type();
  f.from = d.type();
  if (f.to == Type::tf32) return tf32(d, c);
  for (const Type t : {f.to, f.from})
    if (!is_integer(t) && !is_float(t)) d.refuse_type(t);
  if (f.rounding == 'a') d.fail(".rna needs .tf32");
  d.end(2);
  c.source = d.wide_source(d.operand(1), f.from, f.from_width);
  c.destination = d.wide_destination(d.operand(0), f.to, f.to_width);
  if ((f.relu || f.finite) && ((f.to != Type::f16 && f.to != Type::bf16) || f.from != Type::f32))
    d.fail("no such conversion");
  if (is_integer(f.to)) return is_integer(f.from) ? integers(d, c) : to_integer(d, c);
  if (bytes_of(f.to) != f.to_width) d.fail("the destination register is wider than the floating-point result");
  if (is_integer(f.from)) from_integer(d, c);
  else floats(d, c);
}

std::span<const Opcode> convert_opcodes() {
  static const Opcode table[] = {{"cvt", decode_convert, InstructionClass::conversion}};
  return table;
}

}  // namespace machine
