// How undefined bits go through each instruction, lane by lane: which bits of a result depend on which bits of the
// operands.
//
// Where a rule is not exact it calls too much undefined, never too little. Exact are those of the instructions by which
// compilers move bits about: moves, logic, shifts, selections, bit fields, widening, comparisons, pairs in one
// register.
#include <algorithm>
#include <bit>
#include <cmath>

#include "exec/flow.hpp"
#include "exec/real.hpp"
#include "exec/types.hpp"
#include "isa/comparison.hpp"

namespace machine {
namespace {

using u8 = std::uint8_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;
using s64 = std::int64_t;
using Lane = FlowLane;

constexpr u64 low_bits(unsigned n) { return n >= 64 ? ~u64{0} : (u64{1} << n) - 1; }
unsigned width_of(const FlowOperand& o) { return o.bytes == 0 ? 1 : 8 * o.bytes; }
u64 all_of(const Lane& l) { return low_bits(width_of(l.flow.writes[l.write])); }
unsigned count(const Lane& l) { return static_cast<unsigned>(l.flow.reads.size()); }

u64 any_undefined(const Lane& l) {
  u64 u = 0;
  for (unsigned k = 0; k < count(l); ++k) u |= l.undefined[k];
  return u;
}
// From the lowest undefined bit upwards: what a carry can reach.
u64 upwards(u64 u) { return u | (0 - u); }
u64 extended(u64 v, unsigned bits, bool sign) {
  if (bits >= 64) return v;
  v &= low_bits(bits);
  return sign && (v >> (bits - 1) & 1) != 0 ? v | ~low_bits(bits) : v;
}

// ---- conservative, arithmetic --------------------------------------------------------------------------------------

u64 any(const Lane& l) { return any_undefined(l) != 0 ? all_of(l) : 0; }
u64 carries(const Lane& l) { return upwards(any_undefined(l)) & all_of(l); }

// The operands in as many equal parts as the result: x of them.
u64 parts(const Lane& l) {
  const unsigned n = l.flow.x, out = width_of(l.flow.writes[0]) / n;
  u64 r = 0;
  for (unsigned p = 0; p < n; ++p)
    for (unsigned k = 0; k < count(l); ++k) {
      const unsigned in = width_of(l.flow.reads[k]) / n;
      if ((l.undefined[k] >> (p * in) & low_bits(in)) != 0) r |= low_bits(out) << (p * out);
    }
  return r;
}
// The first operand to the upper half, the second to the lower one.
u64 halves_of_two(const Lane& l) {
  const unsigned half = l.flow.x;
  return (l.undefined[0] != 0 ? low_bits(half) << half : 0) | (l.undefined[1] != 0 ? low_bits(half) : 0);
}

// ---- moves -------------------------------------------------------------------------------------------------------

u64 move(const Lane& l) { return l.undefined[0] & all_of(l); }
u64 pack(const Lane& l) {
  const unsigned n = count(l), part = width_of(l.flow.writes[0]) / n;
  u64 r = 0;
  for (unsigned k = 0; k < n; ++k) r |= (l.undefined[k] & low_bits(part)) << (part * k);
  return r;
}
u64 unpack(const Lane& l) {
  const unsigned part = width_of(l.flow.reads[0]) / static_cast<unsigned>(l.flow.writes.size());
  return l.undefined[0] >> (part * l.write) & low_bits(part);
}
// Of 128 bits: the halves of the source to those of the result.
u64 halves_apart(const Lane& l) { return l.undefined[l.write]; }
// From x bits (y: signed), through z bits, to the register.
u64 widen(const Lane& l) {
  const u64 v = extended(l.undefined[0], l.flow.x, (l.flow.y & 1) != 0);
  return extended(v, l.flow.z, (l.flow.y & 2) != 0) & all_of(l);
}

// ---- logic -------------------------------------------------------------------------------------------------------

u64 and_(const Lane& l) {
  const u64 zero = (~l.value[0] & ~l.undefined[0]) | (~l.value[1] & ~l.undefined[1]);
  return (l.undefined[0] | l.undefined[1]) & ~zero & all_of(l);
}
u64 or_(const Lane& l) {
  const u64 one = (l.value[0] & ~l.undefined[0]) | (l.value[1] & ~l.undefined[1]);
  return (l.undefined[0] | l.undefined[1]) & ~one & all_of(l);
}
u64 both(const Lane& l) { return any_undefined(l) & all_of(l); }

u32 look_up(u32 table, u32 a, u32 b, u32 c) {
  u32 r = 0;
  for (unsigned k = 0; k < 8; ++k)
    if ((table >> k & 1) != 0) r |= ((k & 4) != 0 ? a : ~a) & ((k & 2) != 0 ? b : ~b) & ((k & 1) != 0 ? c : ~c);
  return r;
}
u64 lop3(const Lane& l) {
  u32 a[3], u[3], differs = 0;
  for (unsigned k = 0; k < 3; ++k) a[k] = static_cast<u32>(l.value[k]), u[k] = static_cast<u32>(l.undefined[k]);
  const u32 first = look_up(l.inst.extra, a[0], a[1], a[2]);
  for (unsigned j = 1; j < 8; ++j)
    differs |= first ^ look_up(l.inst.extra, a[0] ^ ((j & 4) != 0 ? u[0] : 0), a[1] ^ ((j & 2) != 0 ? u[1] : 0),
                               a[2] ^ ((j & 1) != 0 ? u[2] : 0));
  return differs;
}

// ---- shifts and bit fields: exact where their counts are defined ---------------------------------------------------

u64 shl(const Lane& l) {
  const unsigned width = width_of(l.flow.writes[0]);
  if (l.undefined[1] != 0) return all_of(l);
  return l.value[1] >= width ? 0 : l.undefined[0] << l.value[1] & all_of(l);
}
u64 shr(const Lane& l) {  // x: signed
  const unsigned width = width_of(l.flow.writes[0]);
  if (l.undefined[1] != 0) return all_of(l);
  const u64 u = extended(l.undefined[0], width, l.flow.x != 0), n = l.value[1];
  if (l.flow.x == 0) return n >= width ? 0 : u >> n;
  return static_cast<u64>(static_cast<s64>(u) >> std::min<u64>(n, width - 1)) & all_of(l);
}
u64 shf(const Lane& l) {  // x: left, y: wrap
  if (l.undefined[2] != 0) return all_of(l);
  const u64 c = l.value[2] & 0xffffffffu, n = l.flow.y != 0 ? c & 31 : std::min<u64>(c, 32),
            pair = l.undefined[1] << 32 | (l.undefined[0] & 0xffffffffu);
  return (l.flow.x != 0 ? (pair << n) >> 32 : pair >> n) & 0xffffffffu;
}
u64 prmt(const Lane& l) {
  if (l.undefined[2] != 0) return any_undefined(l) != 0 ? 0xffffffffu : 0;
  const u64 pair = l.undefined[1] << 32 | (l.undefined[0] & 0xffffffffu);
  u64 r = 0;
  for (unsigned k = 0; k < 4; ++k) {
    const u64 select = l.value[2] >> (4 * k), byte = pair >> (8 * (select & 7)) & 0xff;
    r |= ((select & 8) != 0 ? (byte >> 7 != 0 ? 0xffu : 0) : byte) << (8 * k);
  }
  return r;
}
u64 bfi(const Lane& l) {
  const unsigned width = width_of(l.flow.writes[0]);
  if ((l.undefined[2] | l.undefined[3]) != 0) return all_of(l);
  const u64 kept = width == 32 ? 0xff : 0xffffffffu, position = l.value[2] & kept, length = l.value[3] & kept;
  if (position >= width || length == 0) return l.undefined[1];
  const u64 field = low_bits(static_cast<unsigned>(std::min<u64>(length, width - position))) << position;
  return ((l.undefined[1] & ~field) | (l.undefined[0] << position & field)) & all_of(l);
}
u64 bfe(const Lane& l) {  // x: signed
  const unsigned width = width_of(l.flow.writes[0]);
  if ((l.undefined[1] | l.undefined[2]) != 0) return all_of(l);
  const u64 kept = width == 32 ? 0xff : 0xffffffffu, position = l.value[1] & kept, length = l.value[2] & kept;
  if (length == 0) return 0;
  const u64 last = std::min<u64>(position + length - 1, width - 1);
  const bool sign = l.flow.x != 0 && (l.undefined[0] >> last & 1) != 0;
  if (position >= width) return sign ? all_of(l) : 0;
  const unsigned n = static_cast<unsigned>(last - position + 1);
  const u64 field = l.undefined[0] >> position & low_bits(n);
  // What the field does not fill is its sign.
  return (sign ? field | ~low_bits(n) : field) & all_of(l);
}
u64 brev(const Lane& l) {
  const unsigned width = width_of(l.flow.writes[0]);
  u64 r = 0;
  for (unsigned k = 0; k < width; ++k) r |= (l.undefined[0] >> k & 1) << (width - 1 - k);
  return r;
}

// ---- comparison and selection ------------------------------------------------------------------------------------

double real(Type t, u64 v) {
  switch (t) {
    case Type::f16: return half_to_float(static_cast<std::uint16_t>(v));
    case Type::bf16: return bfloat_to_float(static_cast<std::uint16_t>(v));
    case Type::f32: return float_of(static_cast<u32>(v));
    default: return double_of(v);
  }
}
struct Compared {
  bool undefined, value;
};
// x: comparison, y: type.
Compared compared(const Lane& l) {
  const Cmp c = static_cast<Cmp>(l.flow.x);
  const Type t = static_cast<Type>(l.flow.y);
  const bool open = (l.undefined[0] | l.undefined[1]) != 0;
  if (is_float(t)) return {open, !open && holds(c, real(t, l.value[0]), real(t, l.value[1]))};
  const unsigned width = width_of(l.flow.reads[0]);
  // A bit that is defined in both and differs decides equality.
  if (c == Cmp::eq || c == Cmp::ne) {
    const bool differ = ((l.value[0] ^ l.value[1]) & ~(l.undefined[0] | l.undefined[1]) & low_bits(width)) != 0;
    return {open && !differ, differ ? c == Cmp::ne : c == Cmp::eq};
  }
  // The least and the most that either can be. The sign bit turned, signed values compare as unsigned ones.
  const u64 turn = is_signed(t) ? u64{1} << (width - 1) : 0;
  u64 least[2], most[2];
  for (unsigned k = 0; k < 2; ++k) {
    const u64 v = (l.value[k] ^ turn) & low_bits(width);
    least[k] = v & ~l.undefined[k], most[k] = v | l.undefined[k];
  }
  const bool one = holds(c, least[0], most[1]), other = holds(c, most[0], least[1]);
  return {one != other, one};
}
// The comparison and the predicate that it is combined with (z: and, or, xor), of which the second result has the
// opposite.
u64 setp(const Lane& l) {
  Compared r = compared(l);
  if (l.write == 1) r.value = !r.value;
  if (l.flow.z == 0 || count(l) < 3) return r.undefined;
  const bool open = (l.undefined[2] & 1) != 0, c = ((l.value[2] ^ static_cast<u64>(l.inst.imm)) & 1) != 0;
  switch (l.flow.z) {
    case 1: return (r.undefined && (open || c)) || (open && (r.undefined || r.value));
    case 2: return (r.undefined && (open || !c)) || (open && (r.undefined || !r.value));
    default: return r.undefined || open;
  }
}
u64 set(const Lane& l) { return setp(l) != 0 ? all_of(l) : 0; }
u64 setp_pair(const Lane& l) { return (any_undefined(l) >> (16 * l.write) & 0xffff) != 0; }

u64 selected(const Lane& l, bool open, bool first) {
  if (open) return (l.undefined[0] | l.undefined[1] | (l.value[0] ^ l.value[1])) & all_of(l);
  return (first ? l.undefined[0] : l.undefined[1]) & all_of(l);
}
u64 selp(const Lane& l) {
  return selected(l, (l.undefined[2] & 1) != 0, ((l.value[2] ^ static_cast<u64>(l.inst.imm)) & 1) != 0);
}
u64 slct(const Lane& l) {  // x: by a float
  const u32 c = static_cast<u32>(l.value[2]);
  if (l.flow.x != 0) return selected(l, l.undefined[2] != 0, float_of(c) >= 0.0f);
  return selected(l, (l.undefined[2] >> 31 & 1) != 0, static_cast<std::int32_t>(c) >= 0);
}

// ---- by spelling -------------------------------------------------------------------------------------------------

using Words = std::vector<std::string_view>;

bool has(const Words& words, std::string_view w) { return std::find(words.begin(), words.end(), w) != words.end(); }
std::vector<Type> types_in(const Words& words) {
  std::vector<Type> types;
  for (const auto w : words)
    if (const Type t = type_of(w); t != Type::none) types.push_back(t);
  return types;
}
bool is_pair(Type t) { return t == Type::f16x2 || t == Type::bf16x2 || t == Type::u16x2 || t == Type::s16x2; }

Flow plain(FlowRule rule, bool moves = false) {
  Flow f;
  f.kind = FlowKind::computes;
  f.moves = moves;
  f.rule = rule;
  return f;
}
Flow with(FlowRule rule, unsigned x, unsigned y = 0, unsigned z = 0, bool moves = false) {
  Flow f = plain(rule, moves);
  f.x = static_cast<u8>(x), f.y = static_cast<u8>(y), f.z = static_cast<u8>(z);
  return f;
}
Flow kind(FlowKind k) {
  Flow f;
  f.kind = k;
  return f;
}

Flow branches() {
  Flow f = kind(FlowKind::decides);
  f.x = 1;
  return f;
}

Flow conversion(const Words& words) {
  const auto types = types_in(words);
  if (types.size() < 2 || has(words, "pack")) return plain(any);
  const Type to = types[0], from = types[1];
  const auto narrow = [](Type t) {
    return t == Type::e4m3x2 || t == Type::e5m2x2 || t == Type::e2m1x2 || t == Type::e2m3x2 || t == Type::e3m2x2 ||
           t == Type::ue8m0x2;
  };
  if (from == Type::f32 && (is_pair(to) || narrow(to))) return with(halves_of_two, bytes_of(to) * 4);
  if ((is_pair(from) || narrow(from)) && (is_pair(to) || narrow(to))) return with(parts, 2);
  if (!is_integer(to) || !is_integer(from) || has(words, "sat")) return plain(any);
  return with(widen, 8 * bytes_of(from), (is_signed(from) ? 1 : 0) | (is_signed(to) ? 2 : 0), 8 * bytes_of(to), true);
}

Flow comparison(const Words& words, bool predicate) {
  const auto types = types_in(words);
  const Type t = types.empty() ? Type::none : types.back();
  if (t == Type::f16x2 || t == Type::bf16x2) {
    const bool joined = has(words, "and") || has(words, "or") || has(words, "xor");
    return joined ? plain(any) : predicate ? plain(setp_pair) : with(parts, 2);
  }
  int c = 0;
  for (const auto word : words) c = std::max(c, comparison_of(word));
  return with(predicate ? setp : set, static_cast<unsigned>(c), static_cast<unsigned>(t),
              has(words, "and")   ? 1
              : has(words, "or")  ? 2
              : has(words, "xor") ? 3
                                  : 0);
}

bool one_of(std::string_view word, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

}  // namespace

Flow flow_of(std::string_view base, const Words& words, bool packs, bool unpacks) {
  const auto types = types_in(words);
  const Type t = types.empty() ? Type::none : types.back();
  const bool real_type = is_float(t) || t == Type::none;
  if (one_of(base, {"bra", "brx", "exit"})) return branches();
  if (one_of(base, {"ld", "ldu", "st", "atom", "red", "cp", "tensormap", "call", "ret", "alloca", "stacksave",
                    "stackrestore"}))
    return kind(FlowKind::handled);
  if (one_of(base, {"shfl", "vote", "match", "redux", "mma", "wmma", "ldmatrix", "stmatrix", "movmatrix"}))
    return kind(FlowKind::collective);
  if (one_of(base, {"trap", "brkpt", "bar", "barrier", "mbarrier", "elect", "griddepcontrol"}))
    return kind(FlowKind::decides);
  if (base == "mov" && t == Type::b128) return plain(halves_apart, true);
  if (base == "mov") return plain(packs ? pack : unpacks ? unpack : move, true);
  if (base == "cvta" || base == "mapa") return plain(carries);
  if (base == "cvt") return conversion(words);
  if (base == "setp") return comparison(words, true);
  if (base == "set") return comparison(words, false);
  if (base == "selp") return plain(selp, true);
  if (base == "slct") return with(slct, t == Type::f32 ? 1 : 0, 0, 0, true);
  if (base == "and") return plain(and_, true);
  if (base == "or") return plain(or_, true);
  if (base == "xor" || base == "not") return plain(both, true);
  if (base == "lop3") return has(words, "and") || has(words, "or") ? plain(any) : plain(lop3, true);
  if (base == "shl") return plain(shl, true);
  if (base == "shr") return with(shr, is_signed(t) ? 1 : 0, 0, 0, true);
  if (base == "shf") return with(shf, has(words, "l") ? 1 : 0, has(words, "wrap") ? 1 : 0, 0, true);
  if (base == "prmt") return words.size() == 1 ? plain(prmt, true) : plain(any, true);
  if (base == "bfi") return plain(bfi, true);
  if (base == "bfe") return with(bfe, is_signed(t) ? 1 : 0, 0, 0, true);
  if (base == "brev") return plain(brev, true);
  if (is_pair(t)) return with(parts, 2);
  const bool sums = one_of(base, {"add", "sub", "neg"}) || (one_of(base, {"mul", "mad"}) && !has(words, "hi"));
  if (sums && !real_type && !has(words, "sat") && !has(words, "cc")) return plain(carries);
  Flow f = plain(any);
  f.takes_carry = one_of(base, {"addc", "subc", "madc"});
  f.gives_carry = has(words, "cc");
  return f;
}

}  // namespace machine
