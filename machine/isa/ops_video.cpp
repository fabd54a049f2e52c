// Video instructions: on bytes and halfwords chosen out of 32-bit registers, with saturation and a second operation.
//
// Scalar (vadd vsub vabsdiff vmin vmax vshl vshr vmad vset) and on two or four parts at once (vadd2 ... vset4). Lane by
// lane: no compiler emits them for anything that is hot.
#include <algorithm>
#include <array>
#include <optional>

#include "exec/lanes.hpp"
#include "isa/convert.hpp"
#include "isa/families.hpp"

namespace machine {
namespace {

using u8 = std::uint8_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;
using s64 = std::int64_t;
using s128 = __int128;

enum class Op : u8 { add, sub, absdiff, min, max, avrg, shl, shr, set, mad };
enum class Second : u8 { none, add, min, max };

// What of a register is used: `bits` of it from bit `at`.
struct Part {
  u8 at = 0, bits = 32;
};

struct VideoOp {
  Op op = Op::add;
  bool a_signed = false, b_signed = false, d_signed = false, saturate = false, wrap = false;
  Second second = Second::none;
  u8 compare = 0;  // eq ne lt le gt ge
  // Scalar: the parts of a and b; that of d, where the rest is c's.
  Part a, b;
  std::optional<Part> d;
  // Of several: how many, which part of {b, a} goes into each, and which are written.
  unsigned parts = 1;
  std::array<u8, 4> choose_a{}, choose_b{};
  u8 mask = 0;
  // vmad
  bool negate_product = false, negate_c = false, plus_one = false;
  u8 shift = 0;
};

u64 ones(unsigned bits) { return (u64{1} << bits) - 1; }
s64 extended(u64 v, unsigned bits, bool is_signed) {
  v &= ones(bits);
  return is_signed && (v >> (bits - 1) & 1) != 0 ? static_cast<s64>(v) - (s64{1} << bits) : static_cast<s64>(v);
}
s64 clamped(s128 v, unsigned bits, bool is_signed) {
  const s64 low = is_signed ? -(s64{1} << (bits - 1)) : 0, high = (s64{1} << (is_signed ? bits - 1 : bits)) - 1;
  return static_cast<s64>(std::clamp<s128>(v, low, high));
}

bool holds(unsigned compare, s64 a, s64 b) {
  switch (compare) {
    case 0: return a == b;
    case 1: return a != b;
    case 2: return a < b;
    case 3: return a <= b;
    case 4: return a > b;
    default: return a >= b;
  }
}

s128 computed(const VideoOp& op, s64 a, s64 b) {  // a shift may need 65 bits
  const auto count = static_cast<u32>(b);
  const unsigned n = op.wrap ? count & 31 : std::min(count, u32{32});
  switch (op.op) {
    case Op::add: return a + b;
    case Op::sub: return a - b;
    case Op::absdiff: return a < b ? b - a : a - b;
    case Op::min: return std::min(a, b);
    case Op::max: return std::max(a, b);
    case Op::avrg: return (a + b + (a + b >= 0 ? 1 : 0)) >> 1;
    case Op::shl: return static_cast<s128>(a) * (s128{1} << n);
    case Op::shr: return a >> n;
    case Op::set: return holds(op.compare, a, b) ? 1 : 0;
    case Op::mad: break;
  }
  return 0;
}

u32 scalar(const VideoOp& op, u32 a, u32 b, u32 c) {
  s128 v = computed(op, extended(a >> op.a.at, op.a.bits, op.a_signed), extended(b >> op.b.at, op.b.bits, op.b_signed));
  const Part to = op.d.value_or(Part{});
  if (op.saturate) v = clamped(v, to.bits, op.d_signed);
  if (op.d) {
    const u32 field = static_cast<u32>(ones(to.bits)) << to.at;
    return (c & ~field) | (static_cast<u32>(v) << to.at & field);
  }
  const s64 whole = extended(static_cast<u64>(v), 32, op.d_signed), other = extended(c, 32, op.d_signed);
  switch (op.second) {
    case Second::none: return static_cast<u32>(v);
    case Second::add: return static_cast<u32>(v) + c;
    case Second::min: return static_cast<u32>(std::min(whole, other));
    case Second::max: return static_cast<u32>(std::max(whole, other));
  }
  return 0;
}

u32 several(const VideoOp& op, u32 a, u32 b, u32 c) {
  const unsigned bits = 32 / op.parts;
  const u64 both = u64{b} << 32 | a;
  u32 merged = 0, sum = c;
  for (unsigned k = 0; k < op.parts; ++k) {
    if ((op.mask >> k & 1) == 0) {
      merged |= c & static_cast<u32>(ones(bits)) << (bits * k);
      continue;
    }
    s128 v = computed(op, extended(both >> (bits * op.choose_a[k]), bits, op.a_signed),
                      extended(both >> (bits * op.choose_b[k]), bits, op.b_signed));
    if (op.saturate) v = clamped(v, bits, op.d_signed);
    merged |= (static_cast<u32>(v) & static_cast<u32>(ones(bits))) << (bits * k);
    sum += static_cast<u32>(v);
  }
  return op.second == Second::add ? sum : merged;
}

u32 multiplied(const VideoOp& op, u32 a, u32 b, u32 c) {
  s128 product = static_cast<s128>(extended(a >> op.a.at, op.a.bits, op.a_signed)) *
                 extended(b >> op.b.at, op.b.bits, op.b_signed);
  const bool is_signed = op.a_signed || op.b_signed || op.negate_product || op.negate_c;
  if (op.negate_product) product = -product;
  s128 addend = is_signed ? extended(c, 32, true) : s64{c};
  if (op.negate_c) addend = -addend;
  const s128 total = (product + addend + (op.plus_one ? 1 : 0)) >> op.shift;
  return static_cast<u32>(op.saturate ? clamped(static_cast<s64>(total), 32, is_signed) : static_cast<s64>(total));
}

template <u32 (*F)(const VideoOp&, u32, u32, u32)>
const Inst* video(const Inst& i, Warp& w, Mask mask) {
  const VideoOp& op = *static_cast<const VideoOp*>(i.data);
  const u32 *a = w.at<const u32>(i.a), *b = w.at<const u32>(i.b), *c = w.at<const u32>(i.c);
  u32* d = w.at<u32>(i.d);
  for_lanes(mask, [&](unsigned l) { d[l] = F(op, a[l], b[l], c[l]); });
  return &i + 1;
}

// ---- decoding ----------------------------------------------------------------------------------------------------

// An operand "%r1.b0" without its selector, which comes back without the point; empty where there is none.
std::string_view split(Operand& o) {
  if (o.kind != Operand::name) return {};
  const auto name = register_of(o.text);
  if (name.size() == o.text.size()) return {};
  const auto selector = o.text.substr(name.size() + 1);
  o.text = name;
  return selector;
}

std::optional<Part> part_of(Decoder& d, std::string_view selector) {
  if (selector.empty()) return std::nullopt;
  const bool bytes = selector[0] == 'b';
  const unsigned k = static_cast<unsigned>(selector[selector.size() - 1] - '0');
  if (selector.size() != 2 || k > (bytes ? 3u : 1u)) d.fail("no such part '." + std::string(selector) + "'");
  return bytes ? Part{static_cast<u8>(8 * k), 8} : Part{static_cast<u8>(16 * k), 16};
}

// .b3210, .h10: the highest part is named first.
void choose(Decoder& d, std::string_view selector, const VideoOp& op, std::array<u8, 4>& chosen, unsigned usual) {
  for (unsigned k = 0; k < op.parts; ++k) chosen[k] = static_cast<u8>(usual + k);
  if (selector.empty()) return;
  if (selector.size() != op.parts + 1 || selector[0] != (op.parts == 4 ? 'b' : 'h'))
    d.fail("no such parts '." + std::string(selector) + "'");
  for (unsigned k = 0; k < op.parts; ++k) {
    const unsigned from = static_cast<unsigned>(selector[op.parts - k] - '0');
    if (from >= 2 * op.parts) d.fail("no such parts '." + std::string(selector) + "'");
    chosen[k] = static_cast<u8>(from);
  }
}

u8 mask_named(Decoder& d, std::string_view selector, unsigned parts) {
  if (selector.empty()) return static_cast<u8>(ones(parts));
  u8 mask = 0;
  for (const char c : selector.substr(1)) {
    if (c < '0' || static_cast<unsigned>(c - '0') >= parts) d.fail("no such parts '." + std::string(selector) + "'");
    mask = static_cast<u8>(mask | 1u << (c - '0'));
  }
  if (selector[0] != (parts == 4 ? 'b' : 'h')) d.fail("no such parts '." + std::string(selector) + "'");
  return mask;
}

void emit(Decoder& d, Handler h, const VideoOp& op, const Operand& to, const Operand& a, const Operand& b, bool third) {
  const u32 zero = 0;
  const Slot sa = d.source(a, Type::b32), sb = d.source(b, Type::b32);
  const Slot sc = third ? d.source(3, Type::b32) : d.constant(&zero, 4);
  const Slot r = d.destination(to, Type::b32);
  const void* data = d.keep_value(op);
  Inst& i = d.emit(h);
  i.a = sa, i.b = sb, i.c = sc, i.d = r, i.data = data;
}

int comparison(Decoder& d) {
  const int c = d.accept_one({"eq", "ne", "lt", "le", "gt", "ge"});
  if (c < 0) d.fail("needs a comparison");
  return c;
}
bool signed_type(Decoder& d) { return d.type({Type::u32, Type::s32}) == Type::s32; }

template <Op O>
void scalar_decode(Decoder& d) {
  VideoOp op;
  op.op = O;
  op.saturate = d.accept("sat");
  if (O == Op::set) op.compare = static_cast<u8>(comparison(d));
  if (O == Op::shl || O == Op::shr) {
    const int mode = d.accept_one({"clamp", "wrap"});
    if (mode < 0) d.fail("needs .clamp or .wrap");
    op.wrap = mode == 1;
  }
  op.second = static_cast<Second>(d.accept_one({"add", "min", "max"}) + 1);
  if (O != Op::set) op.d_signed = signed_type(d);
  op.a_signed = signed_type(d), op.b_signed = signed_type(d);
  if ((O == Op::shl || O == Op::shr) && op.b_signed) d.refuse_type(Type::s32);
  d.end(3, 4);
  Operand to = d.operand(0), a = d.operand(1), b = d.operand(2);
  op.d = part_of(d, split(to));
  op.a = part_of(d, split(a)).value_or(Part{});
  op.b = part_of(d, split(b)).value_or(Part{});
  const bool third = d.count() == 4;
  if (op.d && op.second != Second::none) d.fail("a part of the destination and a second operation");
  if (third != (op.d || op.second != Second::none)) d.fail(third ? "one operand too many" : "an operand is missing");
  emit(d, video<scalar>, op, to, a, b, third);
}

template <Op O, unsigned Parts>
void several_decode(Decoder& d) {
  VideoOp op;
  op.op = O;
  op.parts = Parts;
  op.saturate = d.accept("sat");
  if (O == Op::set) op.compare = static_cast<u8>(comparison(d));
  if (d.accept("add")) op.second = Second::add;
  if (op.saturate && op.second == Second::add) d.fail(".sat and .add exclude each other");
  if (O != Op::set) op.d_signed = signed_type(d);
  op.a_signed = signed_type(d), op.b_signed = signed_type(d);
  d.end(4);
  Operand to = d.operand(0), a = d.operand(1), b = d.operand(2);
  op.mask = mask_named(d, split(to), Parts);
  choose(d, split(a), op, op.choose_a, 0);
  choose(d, split(b), op, op.choose_b, Parts);
  emit(d, video<several>, op, to, a, b, true);
}

void vmad(Decoder& d) {
  VideoOp op;
  op.op = Op::mad;
  op.saturate = d.accept("sat");
  op.plus_one = d.accept("po");
  const int shift = d.accept_one({"shr7", "shr15"});
  op.shift = shift == 0 ? 7 : shift == 1 ? 15 : 0;
  op.d_signed = signed_type(d), op.a_signed = signed_type(d), op.b_signed = signed_type(d);
  d.end(4);
  Operand a = d.operand(1), b = d.operand(2), c = d.operand(3);
  op.a = part_of(d, split(a)).value_or(Part{});
  op.b = part_of(d, split(b)).value_or(Part{});
  op.negate_product = a.minus != b.minus;
  op.negate_c = c.minus;
  if (op.plus_one && (a.minus || b.minus || c.minus)) d.fail(".po and a negated operand exclude each other");
  if (op.negate_product && op.negate_c) d.fail("a negated product and a negated addend exclude each other");
  a.minus = b.minus = c.minus = false;
  const Slot sa = d.source(a, Type::b32), sb = d.source(b, Type::b32), sc = d.source(c, Type::b32),
             r = d.destination(0, Type::b32);
  const void* data = d.keep_value(op);
  Inst& i = d.emit(video<multiplied>);
  i.a = sa, i.b = sb, i.c = sc, i.d = r, i.data = data;
}

}  // namespace

std::span<const Opcode> video_opcodes() {
  static constexpr auto k = InstructionClass::integer;
  static const Opcode table[] = {
      {"vadd", scalar_decode<Op::add>, k},
      {"vsub", scalar_decode<Op::sub>, k},
      {"vabsdiff", scalar_decode<Op::absdiff>, k},
      {"vmin", scalar_decode<Op::min>, k},
      {"vmax", scalar_decode<Op::max>, k},
      {"vshl", scalar_decode<Op::shl>, k},
      {"vshr", scalar_decode<Op::shr>, k},
      {"vset", scalar_decode<Op::set>, k},
      {"vmad", vmad, k},
      {"vadd2", several_decode<Op::add, 2>, k},
      {"vadd4", several_decode<Op::add, 4>, k},
      {"vsub2", several_decode<Op::sub, 2>, k},
      {"vsub4", several_decode<Op::sub, 4>, k},
      {"vavrg2", several_decode<Op::avrg, 2>, k},
      {"vavrg4", several_decode<Op::avrg, 4>, k},
      {"vabsdiff2", several_decode<Op::absdiff, 2>, k},
      {"vabsdiff4", several_decode<Op::absdiff, 4>, k},
      {"vmin2", several_decode<Op::min, 2>, k},
      {"vmin4", several_decode<Op::min, 4>, k},
      {"vmax2", several_decode<Op::max, 2>, k},
      {"vmax4", several_decode<Op::max, 4>, k},
      {"vset2", several_decode<Op::set, 2>, k},
      {"vset4", several_decode<Op::set, 4>, k},
  };
  return table;
}

}  // namespace machine
