// What a lane does in integer arithmetic, without carries.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace machine::lane_integer {

using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;
using s16 = std::int16_t;
using s32 = std::int32_t;
using s64 = std::int64_t;
using u128 = unsigned __int128;
using s128 = __int128;

template <class T>
struct Wider;
template <>
struct Wider<u16> {
  using type = u32;
};
template <>
struct Wider<s16> {
  using type = s32;
};
template <>
struct Wider<u32> {
  using type = u64;
};
template <>
struct Wider<s32> {
  using type = s64;
};
template <>
struct Wider<u64> {
  using type = u128;
};
template <>
struct Wider<s64> {
  using type = s128;
};
template <class T>
using wider = typename Wider<T>::type;
template <class T>
using bits = std::make_unsigned_t<T>;

template <class T>
T saturate(wider<T> v) {
  constexpr wider<T> low = std::numeric_limits<T>::min(), high = std::numeric_limits<T>::max();
  return static_cast<T>(v < low ? low : v > high ? high : v);
}

// Arithmetic that wraps is done on unsigned values wide enough not to be promoted to int.
template <class T>
using modular = std::conditional_t<(sizeof(T) < 4), u32, bits<T>>;

template <class T>
struct Add {
  static T apply(T a, T b) { return static_cast<T>(static_cast<modular<T>>(a) + static_cast<modular<T>>(b)); }
};
template <class T>
struct Sub {
  static T apply(T a, T b) { return static_cast<T>(static_cast<modular<T>>(a) - static_cast<modular<T>>(b)); }
};
struct AddSat {
  static s32 apply(s32 a, s32 b) { return saturate<s32>(s64{a} + b); }
};
struct SubSat {
  static s32 apply(s32 a, s32 b) { return saturate<s32>(s64{a} - b); }
};
template <class T>
struct MulLo {
  static T apply(T a, T b) { return static_cast<T>(static_cast<modular<T>>(a) * static_cast<modular<T>>(b)); }
};
template <class T>
struct MulHi {
  static T apply(T a, T b) {
    return static_cast<T>((static_cast<wider<T>>(a) * static_cast<wider<T>>(b)) >> (8 * sizeof(T)));
  }
};
template <class T>
struct MulWide {
  static wider<T> apply(T a, T b) { return static_cast<wider<T>>(a) * static_cast<wider<T>>(b); }
};
template <class T>
struct MadLo {
  static T apply(T a, T b, T c) { return Add<T>::apply(MulLo<T>::apply(a, b), c); }
};
template <class T>
struct MadHi {
  static T apply(T a, T b, T c) { return Add<T>::apply(MulHi<T>::apply(a, b), c); }
};
template <class T>
struct MadWide {
  static wider<T> apply(T a, T b, wider<T> c) { return Add<wider<T>>::apply(MulWide<T>::apply(a, b), c); }
};
struct MadHiSat {
  static s32 apply(s32 a, s32 b, s32 c) { return saturate<s32>(s64{MulHi<s32>::apply(a, b)} + c); }
};
template <class T>
struct Min {
  static T apply(T a, T b) { return a < b ? a : b; }
};
template <class T>
struct Max {
  static T apply(T a, T b) { return a > b ? a : b; }
};
template <class T>
struct MinRelu {
  static T apply(T a, T b) { return std::max<T>(std::min(a, b), 0); }
};
template <class T>
struct MaxRelu {
  static T apply(T a, T b) { return std::max<T>(std::max(a, b), 0); }
};
template <class T>
struct Neg {
  static T apply(T a) { return static_cast<T>(modular<T>{0} - static_cast<modular<T>>(a)); }
};
template <class T>
struct Abs {
  static T apply(T a) { return a < 0 ? Neg<T>::apply(a) : a; }
};
template <class T>
struct Sad {
  static T apply(T a, T b, T c) {
    return static_cast<T>(static_cast<modular<T>>(c) +
                          static_cast<modular<T>>(a < b ? static_cast<modular<T>>(b) - static_cast<modular<T>>(a)
                                                        : static_cast<modular<T>>(a) - static_cast<modular<T>>(b)));
  }
};

// Division by zero is unspecified in PTX; the hardware gives all ones, for the remainder too.
template <class T>
struct Div {
  static T apply(T a, T b) {
    if (b == 0) return static_cast<T>(~T{0});
    if constexpr (std::is_signed_v<T>)
      if (b == -1) return Neg<T>::apply(a);
    return static_cast<T>(a / b);
  }
};
template <class T>
struct Rem {
  static T apply(T a, T b) {
    if (b == 0) return static_cast<T>(~T{0});
    if constexpr (std::is_signed_v<T>)
      if (b == -1) return 0;
    return static_cast<T>(a % b);
  }
};

// 32-bit quotients through double, which vectorises. A quotient that is not whole differs from the next whole number by
// at least 2^-32 of itself, which no rounding of a double bridges: truncation is exact in every rounding mode.
template <class T>
T quotient32(T a, T b) {
  const double q = static_cast<double>(a) / static_cast<double>(b == 0 ? T{1} : b);
  return static_cast<T>(static_cast<s64>(q));
}
template <>
struct Div<u32> {
  static u32 apply(u32 a, u32 b) { return b == 0 ? ~0u : quotient32(a, b); }
};
template <>
struct Div<s32> {
  static s32 apply(s32 a, s32 b) { return b == 0 ? -1 : quotient32(a, b); }
};
template <>
struct Rem<u32> {
  static u32 apply(u32 a, u32 b) { return b == 0 ? ~0u : a - quotient32(a, b) * b; }
};
template <>
struct Rem<s32> {
  static s32 apply(s32 a, s32 b) {
    return b == 0 ? -1
                  : static_cast<s32>(static_cast<u32>(a) - static_cast<u32>(quotient32(a, b)) * static_cast<u32>(b));
  }
};

template <class T>
T low24(T v) {
  return std::is_signed_v<T> ? static_cast<T>(static_cast<s32>(static_cast<u32>(v) << 8) >> 8)
                             : static_cast<T>(v & 0xffffff);
}
template <class T>
struct Mul24Lo {
  static T apply(T a, T b) { return static_cast<T>(static_cast<wider<T>>(low24(a)) * low24(b)); }
};
template <class T>
struct Mul24Hi {
  static T apply(T a, T b) { return static_cast<T>((static_cast<wider<T>>(low24(a)) * low24(b)) >> 16); }
};
template <class T>
struct Mad24Lo {
  static T apply(T a, T b, T c) { return Add<T>::apply(Mul24Lo<T>::apply(a, b), c); }
};
template <class T>
struct Mad24Hi {
  static T apply(T a, T b, T c) { return Add<T>::apply(Mul24Hi<T>::apply(a, b), c); }
};
struct Mad24HiSat {
  static s32 apply(s32 a, s32 b, s32 c) { return saturate<s32>(s64{Mul24Hi<s32>::apply(a, b)} + c); }
};

template <class A, class B, unsigned Parts, bool High>
struct Dot {
  static u32 apply(u32 a, u32 b, u32 c) {
    u32 sum = c;
    for (unsigned k = 0; k < Parts; ++k) {
      const auto x = Parts == 4 ? static_cast<u32>(static_cast<s32>(static_cast<A>(a >> (8 * k))))
                                : static_cast<u32>(static_cast<s32>(static_cast<A>(a >> (16 * k))));
      const auto y = static_cast<u32>(static_cast<s32>(static_cast<B>(b >> (8 * (k + (High ? 2 : 0))))));
      sum += x * y;
    }
    return sum;
  }
};

// Packed 16-bit pairs.
template <class T, class F>
struct Pair {
  static u32 apply(u32 a, u32 b) {
    const auto low = static_cast<u16>(F::apply(static_cast<T>(a), static_cast<T>(b)));
    const auto high = static_cast<u16>(F::apply(static_cast<T>(a >> 16), static_cast<T>(b >> 16)));
    return low | u32{high} << 16;
  }
};

}  // namespace machine::lane_integer
