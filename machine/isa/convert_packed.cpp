// cvt to and from pairs: f16x2 bf16x2 e4m3x2 e5m2x2 e2m1x2 e2m3x2 e3m2x2 ue8m0x2, and cvt.pack.
#include <algorithm>

#include "exec/lanes.hpp"
#include "exec/real.hpp"
#include "isa/convert.hpp"
#include "isa/format.hpp"

namespace machine {
namespace {

using u16 = std::uint16_t;
using u32 = std::uint32_t;
using s32 = std::int32_t;

bool is_small(Type t) {
  return t == Type::e4m3x2 || t == Type::e5m2x2 || t == Type::e2m1x2 || t == Type::e2m3x2 || t == Type::e3m2x2;
}
const Format& format_of(Type t) {
  switch (t) {
    case Type::e4m3x2: return kE4m3;
    case Type::e5m2x2: return kE5m2;
    case Type::e2m1x2: return kE2m1;
    case Type::e2m3x2: return kE2m3;
    case Type::f16x2: return kF16;
    case Type::bf16x2: return kBf16;
    default: return kE3m2;
  }
}

struct Packed {
  const Format* to = nullptr;
  const Format* from = nullptr;  // null: f32
  char rounding = 'n';
  bool finite = false, relu = false;
};

float clamp_below(float v, bool relu) { return relu && !(v != v) ? (v > 0 ? v : 0.0f) : v; }

// f32, f32 -> two narrow values; the first operand goes to the upper half.
const Inst* pack_floats(const Inst& i, Warp& w, Mask mask) {
  const Packed& p = *static_cast<const Packed*>(i.data);
  const float *a = w.at<const float>(i.a), *b = w.at<const float>(i.b);
  const unsigned bits = static_cast<unsigned>(p.to->bits());
  const unsigned half = bits > 8 ? 16 : bits > 4 ? 8 : 4;
  for_lanes(mask, [&](unsigned l) {
    const u32 high = encode(clamp_below(a[l], p.relu), *p.to, p.rounding, p.finite);
    const u32 low = encode(clamp_below(b[l], p.relu), *p.to, p.rounding, p.finite);
    const u32 r = high << half | low;
    if (half == 16) w.at<u32>(i.d)[l] = r;
    else w.at<u16>(i.d)[l] = static_cast<u16>(r);
  });
  return &i + 1;
}
struct PackHalf {
  static u32 apply(float a, float b) { return static_cast<u32>(float_to_half(a)) << 16 | float_to_half(b); }
};
struct PackBfloat {
  static u32 apply(float a, float b) { return static_cast<u32>(float_to_bfloat(a)) << 16 | float_to_bfloat(b); }
};

// f16x2 or bf16x2 -> two narrow values
const Inst* narrow_pair(const Inst& i, Warp& w, Mask mask) {
  const Packed& p = *static_cast<const Packed*>(i.data);
  const u32* a = w.at<const u32>(i.a);
  const unsigned half = p.to->bits() > 4 ? 8 : 4;
  for_lanes(mask, [&](unsigned l) {
    auto one = [&](u32 h) {
      const float v = p.from == &kF16 ? half_to_float(static_cast<u16>(h)) : bfloat_to_float(static_cast<u16>(h));
      return encode(clamp_below(v, p.relu), *p.to, p.rounding, p.finite);
    };
    w.at<u16>(i.d)[l] = static_cast<u16>(one(a[l] >> 16) << half | one(a[l] & 0xffff));
  });
  return &i + 1;
}

// two narrow values -> f16x2, by table: a byte pair a lane
const Inst* widen_pair(const Inst& i, Warp& w, Mask mask) {
  const u16* table = static_cast<const u16*>(i.data);
  const u16* a = w.at<const u16>(i.a);
  const unsigned half = i.extra;
  const u32 low_mask = (1u << half) - 1;
  each_lane(w.at<u32>(i.d), mask, [=](unsigned l) {
    return static_cast<u32>(table[a[l] >> half & low_mask]) << 16 | table[a[l] & low_mask];
  });
  return &i + 1;
}

const Inst* to_e8m0(const Inst& i, Warp& w, Mask mask) {
  const bool up = i.extra & 1, finite = i.extra & 2, from_bf16 = i.extra & 4;
  for_lanes(mask, [&](unsigned l) {
    float high, low;
    if (from_bf16) {
      const u32 pair = w.at<const u32>(i.a)[l];
      high = bfloat_to_float(static_cast<u16>(pair >> 16)), low = bfloat_to_float(static_cast<u16>(pair));
    } else {
      high = w.at<const float>(i.a)[l], low = w.at<const float>(i.b)[l];
    }
    w.at<u16>(i.d)[l] = static_cast<u16>(encode_e8m0(high, up, finite) << 8 | encode_e8m0(low, up, finite));
  });
  return &i + 1;
}
struct FromE8m0 {
  static u32 apply(u16 a) { return static_cast<u32>(e8m0_to_bfloat(a >> 8)) << 16 | e8m0_to_bfloat(a & 0xff); }
};

// cvt.pack: saturate two s32 and put them before what c holds.
const Inst* pack_integers(const Inst& i, Warp& w, Mask mask) {
  const s32 *a = w.at<const s32>(i.a), *b = w.at<const s32>(i.b);
  const unsigned bits = i.extra & 0xff;
  const bool is_signed_type = i.extra >> 8 & 1, has_c = i.extra >> 9 & 1;
  const s32 high = is_signed_type ? (1 << (bits - 1)) - 1 : (1 << bits) - 1,
            low = is_signed_type ? -(1 << (bits - 1)) : 0;
  const u32 field = (1u << bits) - 1;
  for_lanes(mask, [&](unsigned l) {
    const u32 x = static_cast<u32>(std::clamp(a[l], low, high)) & field,
              y = static_cast<u32>(std::clamp(b[l], low, high)) & field;
    const u32 rest = has_c ? w.at<const u32>(i.c)[l] << (2 * bits) : 0;
    w.at<u32>(i.d)[l] = rest | x << bits | y;
  });
  return &i + 1;
}

void cvt_pack(Decoder& d) {
  d.accept("pack");
  if (!d.accept("sat")) d.fail("cvt.pack needs .sat");
  const Type to = d.type({Type::u16, Type::s16, Type::u8, Type::s8, Type::u4, Type::s4, Type::u2, Type::s2}),
             from = d.type({Type::s32});
  const bool small = to != Type::u16 && to != Type::s16;
  if (small) d.type({Type::b32});
  d.end(small ? 4 : 3);
  const Slot a = d.source(1, from), b = d.source(2, from), c = small ? d.source(3, Type::b32) : 0,
             r = d.destination(0, Type::b32);
  Inst& i = d.emit(pack_integers);
  i.a = a, i.b = b, i.c = c, i.d = r;
  const auto is = [to](Type x, Type y) { return to == x || to == y; };
  const unsigned bits = is(Type::u16, Type::s16) ? 16 : is(Type::u8, Type::s8) ? 8 : is(Type::u4, Type::s4) ? 4 : 2;
  i.extra = bits | (is_signed(to) || is(Type::s4, Type::s2) ? 1u << 8 : 0) | (small ? 1u << 9 : 0);
}

// The register type that holds a pair.
Type carrier(Type t) {
  return t == Type::f16x2 || t == Type::bf16x2 ? Type::b32 : t == Type::e2m1x2 ? Type::b8 : Type::b16;
}

// A packed cvt: what it converts, and how it rounds. mode: of rn, rz, rp.
struct PackedForm {
  Packed how;
  int mode = -1;
  Type to = Type::none, from = Type::none;
};

void to_scales(Decoder& d, const PackedForm& p) {
  const bool pair = p.from == Type::bf16x2;
  if (p.mode == 0 || p.how.relu || (p.from != Type::f32 && !pair)) d.fail("no such conversion");
  d.end(pair ? 2 : 3);
  const Slot a = d.source(1, pair ? Type::b32 : Type::f32), b = pair ? 0 : d.source(2, Type::f32);
  const Slot r = d.destination(0, Type::b16);
  Inst& i = d.emit(to_e8m0);
  i.a = a, i.b = b, i.d = r, i.extra = (p.mode == 2 ? 1u : 0) | (p.how.finite ? 2u : 0) | (pair ? 4u : 0);
}

void from_scales(Decoder& d, const PackedForm& p) {
  if (p.to != Type::bf16x2 || p.mode != 0 || p.how.relu || p.how.finite) d.fail("no such conversion");
  d.end(2);
  const Slot a = d.source(1, Type::b16), r = d.destination(0, Type::b32);
  Inst& i = d.emit(unary<u32, u16, FromE8m0>);
  i.a = a, i.d = r;
}

void from_two_floats(Decoder& d, PackedForm& p) {
  const bool to_half = p.to == Type::f16x2 || p.to == Type::bf16x2;
  if (p.mode == 2 || (is_small(p.to) && (p.mode != 0 || !p.how.finite))) d.fail("no such conversion");
  d.end(3);
  const Slot a = d.source(1, Type::f32), b = d.source(2, Type::f32);
  const Slot r = d.destination(0, carrier(p.to));
  d.need_mode({false, 'n'});
  p.how.to = &format_of(p.to);
  const bool fast = to_half && p.mode == 0 && !p.how.finite && !p.how.relu;
  const void* data = d.keep_value(p.how);
  Inst& i = d.emit(!fast                 ? pack_floats
                   : p.to == Type::f16x2 ? binary<u32, float, float, PackHalf>
                                         : binary<u32, float, float, PackBfloat>);
  i.a = a, i.b = b, i.d = r, i.data = data;
}

void narrow_halves(Decoder& d, PackedForm& p) {
  if (p.mode != 0 || !p.how.finite) d.fail("no such conversion");
  if (p.from == Type::bf16x2) d.refuse_type(p.from);
  d.end(2);
  const Slot a = d.source(1, Type::b32), r = d.destination(0, carrier(p.to));
  p.how.to = &format_of(p.to);
  p.how.from = &format_of(p.from);
  const void* data = d.keep_value(p.how);
  Inst& i = d.emit(narrow_pair);
  i.a = a, i.d = r, i.data = data;
}

// By a table of every code.
void widen_small(Decoder& d, const PackedForm& p) {
  if (p.mode != 0 || p.how.finite) d.fail("no such conversion");
  d.end(2);
  const Slot a = d.source(1, carrier(p.from)), r = d.destination(0, Type::b32);
  const Format& f = format_of(p.from);
  const unsigned half = f.bits() > 4 ? 8 : 4;
  std::vector<u16> table(std::size_t{1} << half);
  for (u32 code = 0; code < table.size(); ++code) {
    const double v = decode(code & ((1u << f.bits()) - 1), f);
    u16 h = static_cast<u16>(encode(v, kF16, 'n', false));
    if (p.how.relu && v == v && (h & 0x8000)) h = 0;
    table[code] = h;
  }
  const void* data = d.keep_bytes(table.data(), table.size() * 2);
  Inst& i = d.emit(widen_pair);
  i.a = a, i.d = r, i.extra = half, i.data = data;
}

}  // namespace

bool decode_convert_packed(Decoder& d) {
  const auto spelling = d.opcode();
  if (spelling.find(".pack.") != std::string_view::npos) return cvt_pack(d), true;
  if (spelling.find("x2") == std::string_view::npos && spelling.find("x4") == std::string_view::npos) return false;
  PackedForm p;
  p.mode = d.accept_one({"rn", "rz", "rp"});
  p.how.finite = d.accept("satfinite");
  p.how.relu = d.accept("relu");
  p.how.rounding = p.mode < 0 ? 'n' : "nzp"[p.mode];
  p.to = d.type(), p.from = d.type();
  if (p.mode < 0) d.fail("needs a rounding mode");
  const bool to_half = p.to == Type::f16x2 || p.to == Type::bf16x2;
  if (p.to == Type::ue8m0x2) to_scales(d, p);
  else if (p.from == Type::ue8m0x2) from_scales(d, p);
  else if (p.from == Type::f32 && (to_half || is_small(p.to))) from_two_floats(d, p);
  else if (is_small(p.to) && (p.from == Type::f16x2 || p.from == Type::bf16x2)) narrow_halves(d, p);
  else if (is_small(p.from) && p.to == Type::f16x2) widen_small(d, p);
  else d.fail("no such conversion");
  return true;
}

}  // namespace machine
