// cvt between scalars: integers, f16, bf16, f32, f64, tf32. Packed forms are in convert_packed.cpp.
#include "isa/convert.hpp"

#include <limits>

#include "exec/lanes.hpp"
#include "exec/real.hpp"
#include "isa/families.hpp"
#include "isa/format.hpp"

namespace machine {
namespace {

using u8 = std::uint8_t;
using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;
using s8 = std::int8_t;
using s16 = std::int16_t;
using s32 = std::int32_t;
using s64 = std::int64_t;

// ---- integer to integer ------------------------------------------------------------------------------------------

// The source type's value of a register, extended or cut to the destination register.
template <class D, class S, class R>
struct Extend {
  static D apply(R a) { return static_cast<D>(static_cast<S>(a)); }
};
template <class D, class S>
Handler extend_from(unsigned width) {
  if constexpr (sizeof(S) <= 2)
    if (width == 2) return unary<D, u16, Extend<D, S, u16>>;
  if constexpr (sizeof(S) <= 4)
    if (width == 4) return unary<D, u32, Extend<D, S, u32>>;
  return unary<D, u64, Extend<D, S, u64>>;
}
template <class D>
Handler extend_to(Type s, unsigned width) {
  switch (s) {
    case Type::u8: return extend_from<D, u8>(width);
    case Type::s8: return extend_from<D, s8>(width);
    case Type::u16: return extend_from<D, u16>(width);
    case Type::s16: return extend_from<D, s16>(width);
    case Type::u32: return extend_from<D, u32>(width);
    case Type::s32: return extend_from<D, s32>(width);
    case Type::u64: return extend_from<D, u64>(width);
    default: return extend_from<D, s64>(width);
  }
}
Handler extend(unsigned to, Type s, unsigned width) {
  return to == 2 ? extend_to<u16>(s, width) : to == 4 ? extend_to<u32>(s, width) : extend_to<u64>(s, width);
}

__int128 load_integer(Type t, u64 raw) {
  switch (t) {
    case Type::u8: return static_cast<u8>(raw);
    case Type::s8: return static_cast<s8>(raw);
    case Type::u16: return static_cast<u16>(raw);
    case Type::s16: return static_cast<s16>(raw);
    case Type::u32: return static_cast<u32>(raw);
    case Type::s32: return static_cast<s32>(raw);
    case Type::u64: return raw;
    default: return static_cast<s64>(raw);
  }
}
__int128 clamp_integer(Type t, __int128 v) {
  const unsigned bits = bytes_of(t) * 8;
  const __int128 low = is_signed(t) ? -(static_cast<__int128>(1) << (bits - 1)) : 0;
  const __int128 high = (static_cast<__int128>(1) << (is_signed(t) ? bits - 1 : bits)) - 1;
  return v < low ? low : v > high ? high : v;
}
u64 read_register(const Warp& w, Slot s, unsigned width, unsigned lane) {
  return width == 2 ? w.at<const u16>(s)[lane] : width == 4 ? w.at<const u32>(s)[lane] : w.at<const u64>(s)[lane];
}
void write_register(Warp& w, Slot s, unsigned width, unsigned lane, u64 v) {
  if (width == 2) w.at<u16>(s)[lane] = static_cast<u16>(v);
  else if (width == 4) w.at<u32>(s)[lane] = static_cast<u32>(v);
  else w.at<u64>(s)[lane] = v;
}

struct General {  // what the lane-by-lane handlers need to know
  Type to, from;
  unsigned to_width, from_width;
  char rounding;  // n z m p a, or i-forms: the mode that rounds to an integral value
  bool integral, flush, sat, finite, relu;
};
const General& general(const Inst& i) { return *static_cast<const General*>(i.data); }

const Inst* integer_saturating(const Inst& i, Warp& w, Mask mask) {
  const General& g = general(i);
  for_lanes(mask, [&](unsigned l) {
    write_register(w, i.d, g.to_width, l,
                   static_cast<u64>(clamp_integer(g.to, load_integer(g.from, read_register(w, i.a, g.from_width, l)))));
  });
  return &i + 1;
}

// ---- float to integer: the fast, common forms --------------------------------------------------------------------

inline float rounded(float v) { return __builtin_rintf(v); }
inline double rounded(double v) { return __builtin_rint(v); }

template <class T>
using bits = std::make_unsigned_t<T>;
template <class D, class S, bool Flush>
struct ToInteger {
  static D apply(S a) {
    const S v = rounded(Flush ? flushed(a) : a);
    constexpr S low = static_cast<S>(std::numeric_limits<D>::min());
    constexpr S high = static_cast<S>(std::numeric_limits<D>::max());  // may round up to 2^n
    // NaN: the top bit when either side has 64 bits, else 0.
    const D nan = sizeof(D) == 8 || sizeof(S) == 8 ? static_cast<D>(bits<D>{1} << (8 * sizeof(D) - 1)) : D{0};
    const D inside = static_cast<D>(v > low && v < high ? v : S{0});
    return v != v ? nan : v >= high ? std::numeric_limits<D>::max() : v <= low ? std::numeric_limits<D>::min() : inside;
  }
};
template <class S, bool Flush>
Handler to_integer(Type t) {
  switch (t) {
    case Type::u32: return unary<u32, S, ToInteger<u32, S, Flush>>;
    case Type::s32: return unary<s32, S, ToInteger<s32, S, Flush>>;
    case Type::u64: return unary<u64, S, ToInteger<u64, S, Flush>>;
    case Type::s64: return unary<s64, S, ToInteger<s64, S, Flush>>;
    default: return nullptr;
  }
}

// ---- everything else, lane by lane -------------------------------------------------------------------------------

double integral(double v, char rounding) {
  switch (rounding) {
    case 'z': return std::trunc(v);
    case 'm': return std::floor(v);
    case 'p': return std::ceil(v);
    default: {
      const double f = std::floor(v), d = v - f;
      const bool up = d > 0.5 || (d == 0.5 && std::fmod(f, 2.0) != 0);
      return std::copysign(up ? f + 1 : f, v);
    }
  }
}
double widen(Type t, u64 raw) {
  switch (t) {
    case Type::f16: return half_to_float(static_cast<u16>(raw));
    case Type::bf16: return bfloat_to_float(static_cast<u16>(raw));
    case Type::f32: return float_of(static_cast<u32>(raw));
    default: return double_of(raw);
  }
}
constexpr Format kF32{8, 23, 127, 0x7f7fffff, 0x7f800000, 0x7fffffff};

// An integer as a double that rounds like the integer: exact, or truncated with a sticky last bit.
double sticky(__int128 v) {
  const bool negative = v < 0;
  unsigned __int128 m = negative ? -static_cast<unsigned __int128>(v) : static_cast<unsigned __int128>(v);
  int shift = 0;
  while (m >> 53 != 0) {
    const bool lost = m & 1;
    m = m >> 1 | (lost ? 1 : 0);
    ++shift;
  }
  const double r = std::ldexp(static_cast<double>(static_cast<u64>(m)), shift);
  return negative ? -r : r;
}

u64 narrow(double v, const General& g) {
  if (v != v && g.from == Type::f64) {  // an f64 NaN keeps its sign and the head of its payload
    const u64 b = bits_of(v), sign = b >> 63;
    if (g.to == Type::f16) return sign << 15 | 0x7e00 | (b >> 42 & 0x1ff);
    if (g.to == Type::bf16) return sign << 15 | 0x7fc0 | (b >> 45 & 0x3f);
    if (g.to == Type::f32) return sign << 31 | 0x7fc00000 | (b >> 29 & 0x3fffff);
  }
  switch (g.to) {
    case Type::f16: return encode(v, kF16, g.rounding, g.finite);
    case Type::bf16: return encode(v, kBf16, g.rounding, g.finite);
    case Type::f32: return encode(v, kF32, g.rounding, g.finite);
    default: return bits_of(v);
  }
}

const Inst* convert_general(const Inst& i, Warp& w, Mask mask) {
  const General& g = general(i);
  for_lanes(mask, [&](unsigned l) {
    const u64 raw = read_register(w, i.a, g.from_width, l);
    double v = 0;
    if (is_integer(g.from)) {
      v = sticky(load_integer(g.from, raw));
    } else {
      v = widen(g.from, raw);
      if (g.flush && g.from == Type::f32 && g.to != Type::f16) v = flushed(float_of(static_cast<u32>(raw)));
    }
    if (is_integer(g.to)) {
      u64 r;
      if (v != v) {
        r = bytes_of(g.to) == 8 || g.from == Type::f64
                ? static_cast<u64>(load_integer(g.to, u64{1} << (8 * bytes_of(g.to) - 1)))
                : 0;
      } else {
        const double n = integral(v, g.rounding);
        const __int128 whole = n > 0x1p100    ? static_cast<__int128>(1) << 100
                               : n < -0x1p100 ? -(static_cast<__int128>(1) << 100)
                                              : static_cast<__int128>(n);
        r = static_cast<u64>(clamp_integer(g.to, whole));
      }
      write_register(w, i.d, g.to_width, l, r);
      return;
    }
    if (g.integral) v = integral(v, g.rounding);
    if (g.sat) v = saturated(v);
    if (g.relu) v = v != v ? v : v > 0 ? v : 0.0;
    u64 r = g.to == Type::f64 && is_integer(g.from) ? bits_of(v) : narrow(v, g);
    if (g.flush && g.to == Type::f32) r = bits_of(flushed(float_of(static_cast<u32>(r))));
    write_register(w, i.d, g.to_width, l, r);
  });
  return &i + 1;
}

// 64-bit integers to f64 need the rounding mode: the host conversion has it.
template <class S>
struct ToDouble {
  static double apply(S a) { return static_cast<double>(a); }
};
template <class S>
struct ToFloat {
  static float apply(S a) { return static_cast<float>(a); }
};
#if MACHINE_AVX512
// The processor widens as PTX does, but for the pattern of NaN.
const Inst* widen_halves(const Inst& i, Warp& w, Mask mask) {
  const u16* a = w.at<const u16>(i.a);
  alignas(64) float t[kWarp];
  for (unsigned g = 0; g < 2; ++g) {
    const __m512 v = _mm512_cvtph_ps(_mm256_load_si256(reinterpret_cast<const __m256i*>(a + 16 * g)));
    const __mmask16 nan = _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q);
    _mm512_store_ps(t + 16 * g, _mm512_mask_mov_ps(v, nan, _mm512_castsi512_ps(_mm512_set1_epi32(kNan32))));
  }
  blend(w.at<float>(i.d), t, mask);
  return &i + 1;
}
#else
struct HalfToFloat {
  static float apply(u16 a) { return canonical(half_to_float(a)); }
};
constexpr Handler widen_halves = unary<float, u16, HalfToFloat>;
#endif
struct BfloatToFloat {
  static float apply(u16 a) { return bfloat_to_float(a); }
};
struct FloatToHalf {
  static u16 apply(float a) { return float_to_half(a); }
};
struct FloatToBfloat {
  static u16 apply(float a) { return float_to_bfloat(a); }
};
template <bool Flush>
struct Widen {
  static double apply(float a) { return Flush ? canonical(a) : a; }
};
struct Narrow {
  static float apply(double a) { return static_cast<float>(a); }
};
template <bool Flush, bool Sat>
struct Same {
  static float apply(float a) {
    const float v = Flush ? flushed(a) : a;
    return Sat ? saturated(v) : Flush ? canonical(v) : v;
  }
};
template <bool Flush>
struct Integral {
  static float apply(float a) { return canonical(rounded(Flush ? flushed(a) : a)); }
};
// .satfinite takes one step back from what has no number, a NaN as well.
template <bool Finite>
struct ToTf32Away {
  static u32 apply(float a) {
    const u32 b = bits_of(a), exponents = 0x7f800000u;
    const u32 r = ((b & exponents) == exponents ? b : b + 0x1000u) & 0xffffe000u;
    return Finite && (r & exponents) == exponents ? r - 0x2000u : r;
  }
};

// tf32 by other roundings: value kept in the upper 19 bits.
const Inst* to_tf32(const Inst& i, Warp& w, Mask mask) {
  const General& g = general(i);
  for_lanes(mask, [&](unsigned l) {
    float v = w.at<const float>(i.a)[l];
    if (g.relu) v = v != v ? v : v > 0 ? v : 0.0f;
    w.at<u32>(i.d)[l] = v != v ? 0x7fffe000u : encode(v, kTf32, g.rounding, g.finite) << 13;
  });
  return &i + 1;
}

bool scalar_type(Type t) { return is_integer(t) || is_float(t); }

}  // namespace

void decode_convert(Decoder& d) {
  if (decode_convert_packed(d)) return;
  General g{};
  const int integer_mode = d.take_one({"rni", "rzi", "rmi", "rpi"});
  const int float_mode = d.take_one({"rn", "rz", "rm", "rp", "rna"});
  g.flush = d.flush();
  g.sat = d.take("sat");
  g.finite = d.take("satfinite");
  g.relu = d.take("relu");
  if (integer_mode >= 0 && float_mode >= 0) d.fail("two rounding modes");
  g.integral = integer_mode >= 0;
  g.rounding = integer_mode >= 0 ? "nzmp"[integer_mode] : float_mode >= 0 ? "nzmpa"[float_mode] : 'n';
  g.to = d.type();
  g.from = d.type();
  const bool given = integer_mode >= 0 || float_mode >= 0;

  if (g.to == Type::tf32) {
    if (g.from != Type::f32 || integer_mode >= 0 || float_mode < 0 || float_mode == 2 || float_mode == 3 || g.flush ||
        g.sat)
      d.fail("no such conversion");
    d.end(2);
    const Slot a = d.source(1, Type::f32), r = d.destination(0, Type::b32);
    Inst& i = d.emit(g.rounding != 'a' || g.relu ? to_tf32
                     : g.finite                  ? unary<u32, float, ToTf32Away<true>>
                                                 : unary<u32, float, ToTf32Away<false>>);
    i.a = a, i.d = r;
    i.data = keep_general(d, &g, sizeof g);
    return;
  }
  if (!scalar_type(g.to)) d.refuse_type(g.to);
  if (!scalar_type(g.from)) d.refuse_type(g.from);
  if (g.rounding == 'a') d.fail(".rna needs .tf32");
  d.end(2);
  const Slot a = d.wide_source(d.operand(1), g.from, g.from_width);
  const Slot r = d.wide_destination(d.operand(0), g.to, g.to_width);
  const bool from_int = is_integer(g.from), to_int = is_integer(g.to);
  if (g.relu || g.finite) {
    if ((g.to != Type::f16 && g.to != Type::bf16) || g.from != Type::f32) d.fail("no such conversion");
  }
  auto put = [&](Handler h) {
    Inst& i = d.emit(h);
    i.a = a, i.d = r;
    i.data = keep_general(d, &g, sizeof g);
  };

  if (from_int && to_int) {
    if (given || g.flush) d.fail("integers take no rounding mode and no .ftz");
    if (g.sat) return put(integer_saturating);
    if (bytes_of(g.to) == g.to_width) return put(extend(g.to_width, g.from, g.from_width));
    // The register is wider than the result: the result's own type decides how it is extended.
    if (bytes_of(g.to) <= bytes_of(g.from)) return put(extend(g.to_width, g.to, g.from_width));
    const Slot middle = d.scratch(std::max(bytes_of(g.to), 2u));
    Inst& first = d.emit(extend(std::max(bytes_of(g.to), 2u), g.from, g.from_width));
    first.a = a, first.d = middle;
    Inst& second = d.emit(extend(g.to_width, g.to, std::max(bytes_of(g.to), 2u)));
    second.a = middle, second.d = r;
    return;
  }
  if (!from_int && to_int) {
    if (integer_mode < 0) d.fail("needs .rni, .rzi, .rmi or .rpi");
    const bool exact_width = bytes_of(g.to) == g.to_width && bytes_of(g.from) == g.from_width;
    const Handler fast = !exact_width ? nullptr
                         : g.from == Type::f32
                             ? (g.flush ? to_integer<float, true>(g.to) : to_integer<float, false>(g.to))
                         : g.from == Type::f64 ? to_integer<double, false>(g.to)
                                               : nullptr;
    if (fast != nullptr) {
      d.need_mode({false, g.rounding});
      return put(fast);
    }
    d.need_mode({false, 'n'});
    return put(convert_general);
  }
  if (bytes_of(g.to) != g.to_width) d.fail("the destination register is wider than the floating-point result");
  if (from_int) {
    if (float_mode < 0) d.fail("needs .rn, .rz, .rm or .rp");
    const Mode mode{false, g.rounding};
    if (!g.sat && bytes_of(g.from) == g.from_width && (g.to == Type::f32 || g.to == Type::f64)) {
      const bool f32 = g.to == Type::f32;
      Handler fast = nullptr;
      switch (g.from) {
        case Type::s16: fast = f32 ? unary<float, s16, ToFloat<s16>> : unary<double, s16, ToDouble<s16>>; break;
        case Type::u16: fast = f32 ? unary<float, u16, ToFloat<u16>> : unary<double, u16, ToDouble<u16>>; break;
        case Type::s32: fast = f32 ? unary<float, s32, ToFloat<s32>> : unary<double, s32, ToDouble<s32>>; break;
        case Type::u32:
          fast =
              f32 ? (g.rounding == 'n' ? unary<float, u32, ToFloat<u32>> : nullptr) : unary<double, u32, ToDouble<u32>>;
          break;
        case Type::s64:
          fast =
              g.rounding == 'n' ? (f32 ? unary<float, s64, ToFloat<s64>> : unary<double, s64, ToDouble<s64>>) : nullptr;
          break;
        case Type::u64:
          fast =
              g.rounding == 'n' ? (f32 ? unary<float, u64, ToFloat<u64>> : unary<double, u64, ToDouble<u64>>) : nullptr;
          break;
        default: break;
      }
      if (fast != nullptr) {
        d.need_mode(mode);
        return put(fast);
      }
    }
    d.need_mode({false, 'n'});
    if (g.to == Type::f64 && bytes_of(g.from) == 8 && !g.sat)
      return put(convert_double(g.from == Type::s64, g.rounding));
    return put(convert_general);
  }
  // float to float
  if (bytes_of(g.from) != g.from_width) d.fail("the source register is wider than its type");
  const bool same = g.from == g.to;
  if (same && float_mode >= 0) d.fail("a rounding mode needs a narrower result");
  if (!same && g.integral) {
    // ptxas accepts .rni and the like only between equal types
    d.fail("rounding to an integral value needs equal types");
  }
  const bool widens = bytes_of(g.to) > bytes_of(g.from);
  if (!same && !widens && float_mode < 0) d.fail("needs a rounding mode");
  if (g.flush && g.from != Type::f32 && g.to != Type::f32) d.fail(".ftz needs .f32");
  const bool plain = !g.sat && !g.relu && !g.finite;
  if (plain && g.from == Type::f16 && g.to == Type::f32) return d.need_mode({false, 'n'}), put(widen_halves);
  if (plain && g.from == Type::bf16 && g.to == Type::f32 && !g.flush) return put(unary<float, u16, BfloatToFloat>);
  if (plain && g.rounding == 'n' && g.from == Type::f32 && g.to == Type::f16)
    return d.need_mode({false, 'n'}), put(unary<u16, float, FloatToHalf>);
  if (plain && g.rounding == 'n' && g.from == Type::f32 && g.to == Type::bf16 && !g.flush)
    return put(unary<u16, float, FloatToBfloat>);
  if (plain && g.from == Type::f32 && g.to == Type::f64)
    return d.need_mode({g.flush, 'n'}),
           put(g.flush ? unary<double, float, Widen<true>> : unary<double, float, Widen<false>>);
  if (plain && g.from == Type::f64 && g.to == Type::f32)
    return d.need_mode({g.flush, g.rounding}), put(unary<float, double, Narrow>);
  if (same && g.from == Type::f32 && !g.integral) {
    d.need_mode({false, 'n'});
    return put(g.flush ? (g.sat ? unary<float, float, Same<true, true>> : unary<float, float, Same<true, false>>)
                       : (g.sat ? unary<float, float, Same<false, true>> : unary<float, float, Same<false, false>>));
  }
  if (same && g.from == Type::f32 && !g.sat)
    return d.need_mode({false, g.rounding}),
           put(g.flush ? unary<float, float, Integral<true>> : unary<float, float, Integral<false>>);
  d.need_mode({false, 'n'});
  put(convert_general);
}

namespace {

template <class S>
const Inst* exact_double(const Inst& i, Warp& w, Mask mask) {
  // Directed rounding of a 64-bit integer, by comparing with what nearest gave.
  const S* a = w.at<const S>(i.a);
  for_lanes(mask, [&](unsigned l) {
    double v = static_cast<double>(a[l]);
    const __int128 back = static_cast<__int128>(v), exact = a[l];
    const bool above = back > exact, under = back < exact;
    const char r = static_cast<char>(i.extra);
    const bool down = r == 'm' || (r == 'z' && exact > 0), up = r == 'p' || (r == 'z' && exact < 0);
    if (above && down) v = std::nextafter(v, -__builtin_inf());
    if (under && up) v = std::nextafter(v, __builtin_inf());
    w.at<double>(i.d)[l] = v;
  });
  return &i + 1;
}

template <class S, char R>
const Inst* exact_double_by(const Inst& i, Warp& w, Mask mask) {
  Inst copy = i;
  copy.extra = static_cast<u32>(R);
  exact_double<S>(copy, w, mask);
  return &i + 1;
}

}  // namespace

Handler convert_double(bool is_signed_source, char rounding) {
  switch (rounding) {
    case 'z': return is_signed_source ? exact_double_by<s64, 'z'> : exact_double_by<u64, 'z'>;
    case 'm': return is_signed_source ? exact_double_by<s64, 'm'> : exact_double_by<u64, 'm'>;
    case 'p': return is_signed_source ? exact_double_by<s64, 'p'> : exact_double_by<u64, 'p'>;
    default: return is_signed_source ? exact_double_by<s64, 'n'> : exact_double_by<u64, 'n'>;
  }
}

const void* keep_general(Decoder& d, const void* what, std::size_t bytes) {
  const auto* from = static_cast<const std::byte*>(what);
  d.function.blobs.emplace_back(from, from + bytes);
  return d.function.blobs.back().data();
}

std::span<const Opcode> convert_opcodes() {
  static const Opcode table[] = {{"cvt", decode_convert, InstructionClass::conversion}};
  return table;
}

}  // namespace machine
