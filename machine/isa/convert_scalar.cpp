// What conversions between scalars do: integers, f16, bf16, f32, f64, tf32.
#include "isa/convert_scalar.hpp"

#include <limits>

#include "exec/lanes.hpp"
#include "exec/real.hpp"
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
const Conversion& conversion(const Inst& i) { return *static_cast<const Conversion*>(i.data); }
u64 read_register(const Warp& w, Slot s, unsigned width, unsigned lane) {
  return width == 2 ? w.at<const u16>(s)[lane] : width == 4 ? w.at<const u32>(s)[lane] : w.at<const u64>(s)[lane];
}
void write_register(Warp& w, Slot s, unsigned width, unsigned lane, u64 v) {
  if (width == 2) w.at<u16>(s)[lane] = static_cast<u16>(v);
  else if (width == 4) w.at<u32>(s)[lane] = static_cast<u32>(v);
  else w.at<u64>(s)[lane] = v;
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

double to_integral(double v, char rounding) {
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

u64 narrow(double v, const Conversion& g) {
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

// What is not a number becomes 0, or the top bit where either side has 64.
u64 integer_of(double v, const Conversion& g) {
  if (v != v)
    return bytes_of(g.to) == 8 || g.from == Type::f64
               ? static_cast<u64>(load_integer(g.to, u64{1} << (8 * bytes_of(g.to) - 1)))
               : 0;
  const double n = to_integral(v, g.rounding);
  const __int128 whole = n > 0x1p100    ? static_cast<__int128>(1) << 100
                         : n < -0x1p100 ? -(static_cast<__int128>(1) << 100)
                                        : static_cast<__int128>(n);
  return static_cast<u64>(clamp_integer(g.to, whole));
}

u64 real_of(double v, const Conversion& g) {
  if (g.integral) v = to_integral(v, g.rounding);
  if (g.sat) v = saturated(v);
  if (g.relu) v = v != v ? v : v > 0 ? v : 0.0;
  const u64 r = g.to == Type::f64 && is_integer(g.from) ? bits_of(v) : narrow(v, g);
  return g.flush && g.to == Type::f32 ? bits_of(flushed(float_of(static_cast<u32>(r)))) : r;
}

double value_of(u64 raw, const Conversion& g) {
  if (is_integer(g.from)) return sticky(load_integer(g.from, raw));
  if (g.flush && g.from == Type::f32 && g.to != Type::f16) return flushed(float_of(static_cast<u32>(raw)));
  return widen(g.from, raw);
}

// ---- the fast, common forms of floats ------------------------------------------------------------------------------

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
const Inst* round_to_tf32(const Inst& i, Warp& w, Mask mask) {
  const Conversion& g = conversion(i);
  for_lanes(mask, [&](unsigned l) {
    float v = w.at<const float>(i.a)[l];
    if (g.relu) v = v != v ? v : v > 0 ? v : 0.0f;
    w.at<u32>(i.d)[l] = v != v ? 0x7fffe000u : encode(v, kTf32, g.rounding, g.finite) << 13;
  });
  return &i + 1;
}

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

Handler extend_integer(unsigned to, Type s, unsigned width) {
  return to == 2 ? extend_to<u16>(s, width) : to == 4 ? extend_to<u32>(s, width) : extend_to<u64>(s, width);
}

const Inst* saturate_integer(const Inst& i, Warp& w, Mask mask) {
  const Conversion& g = conversion(i);
  for_lanes(mask, [&](unsigned l) {
    write_register(w, i.d, g.to_width, l,
                   static_cast<u64>(clamp_integer(g.to, load_integer(g.from, read_register(w, i.a, g.from_width, l)))));
  });
  return &i + 1;
}

Handler float_to_integer(const Conversion& c) {
  if (!c.exact_widths()) return nullptr;
  if (c.from == Type::f32) return c.flush ? to_integer<float, true>(c.to) : to_integer<float, false>(c.to);
  return c.from == Type::f64 ? to_integer<double, false>(c.to) : nullptr;
}

Handler integer_to_float(const Conversion& c) {
  if (c.sat || bytes_of(c.from) != c.from_width || (c.to != Type::f32 && c.to != Type::f64)) return nullptr;
  const bool f32 = c.to == Type::f32, nearest = c.rounding == 'n';
  switch (c.from) {
    case Type::s16: return f32 ? unary<float, s16, ToFloat<s16>> : unary<double, s16, ToDouble<s16>>;
    case Type::u16: return f32 ? unary<float, u16, ToFloat<u16>> : unary<double, u16, ToDouble<u16>>;
    case Type::s32: return f32 ? unary<float, s32, ToFloat<s32>> : unary<double, s32, ToDouble<s32>>;
    case Type::u32:
      if (!f32) return unary<double, u32, ToDouble<u32>>;
      return nearest ? unary<float, u32, ToFloat<u32>> : nullptr;
    case Type::s64:
      if (!nearest) return nullptr;
      return f32 ? unary<float, s64, ToFloat<s64>> : unary<double, s64, ToDouble<s64>>;
    case Type::u64:
      if (!nearest) return nullptr;
      return f32 ? unary<float, u64, ToFloat<u64>> : unary<double, u64, ToDouble<u64>>;
    default: return nullptr;
  }
}

Handler integer_to_double(bool is_signed_source, char rounding) {
  switch (rounding) {
    case 'z': return is_signed_source ? exact_double_by<s64, 'z'> : exact_double_by<u64, 'z'>;
    case 'm': return is_signed_source ? exact_double_by<s64, 'm'> : exact_double_by<u64, 'm'>;
    case 'p': return is_signed_source ? exact_double_by<s64, 'p'> : exact_double_by<u64, 'p'>;
    default: return is_signed_source ? exact_double_by<s64, 'n'> : exact_double_by<u64, 'n'>;
  }
}

Handler float_to_float(const Conversion& c) {
  if (c.from == Type::f32 && c.to == Type::f32) {
    if (c.integral)
      return c.sat ? nullptr : c.flush ? unary<float, float, Integral<true>> : unary<float, float, Integral<false>>;
    if (c.sat) return c.flush ? unary<float, float, Same<true, true>> : unary<float, float, Same<false, true>>;
    return c.flush ? unary<float, float, Same<true, false>> : unary<float, float, Same<false, false>>;
  }
  if (c.sat || c.relu || c.finite) return nullptr;
  if (c.from == Type::f16 && c.to == Type::f32) return widen_halves;
  if (c.from == Type::bf16 && c.to == Type::f32) return c.flush ? nullptr : unary<float, u16, BfloatToFloat>;
  if (c.from == Type::f64 && c.to == Type::f32) return unary<float, double, Narrow>;
  if (c.from != Type::f32) return nullptr;
  if (c.to == Type::f64) return c.flush ? unary<double, float, Widen<true>> : unary<double, float, Widen<false>>;
  if (c.rounding != 'n') return nullptr;
  if (c.to == Type::f16) return unary<u16, float, FloatToHalf>;
  return c.to == Type::bf16 && !c.flush ? unary<u16, float, FloatToBfloat> : nullptr;
}

Handler to_tf32(const Conversion& c) {
  if (c.rounding != 'a' || c.relu) return round_to_tf32;
  return c.finite ? unary<u32, float, ToTf32Away<true>> : unary<u32, float, ToTf32Away<false>>;
}

const Inst* convert_lane_by_lane(const Inst& i, Warp& w, Mask mask) {
  const Conversion& g = conversion(i);
  for_lanes(mask, [&](unsigned l) {
    const double v = value_of(read_register(w, i.a, g.from_width, l), g);
    write_register(w, i.d, g.to_width, l, is_integer(g.to) ? integer_of(v, g) : real_of(v, g));
  });
  return &i + 1;
}

}  // namespace machine
