// What a lane does in logic and with bit fields.
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

#include "exec/lanes.hpp"

namespace machine::lane_bits {

using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;
using s16 = std::int16_t;
using s32 = std::int32_t;
using s64 = std::int64_t;

template <class T>
struct And {
  static T apply(T a, T b) { return a & b; }
};
template <class T>
struct Or {
  static T apply(T a, T b) { return a | b; }
};
template <class T>
struct Xor {
  static T apply(T a, T b) { return a ^ b; }
};
template <class T>
struct Not {
  static T apply(T a) { return static_cast<T>(~a); }
};
template <class T>
struct Cnot {
  static T apply(T a) { return a == 0; }
};
// Shift amounts are clamped to the width.
template <class T>
struct Shl {
  static T apply(T a, u32 n) { return n >= 8 * sizeof(T) ? T{0} : static_cast<T>(a << n); }
};
template <class T>
struct Shr {
  static T apply(T a, u32 n) {
    constexpr u32 top = 8 * sizeof(T) - 1;
    if constexpr (std::is_signed_v<T>) return static_cast<T>(a >> (n > top ? top : n));
    else return n > top ? T{0} : static_cast<T>(a >> n);
  }
};

template <bool Left, bool Wrap>
struct Funnel {
  static u32 apply(u32 a, u32 b, u32 c) {
    const u32 n = Wrap ? c & 31 : (c > 32 ? 32 : c);
    const u64 both = u64{b} << 32 | a;
    return Left ? static_cast<u32>((both << n) >> 32) : static_cast<u32>(both >> n);
  }
};

// In 32 bits throughout, which vectorises: sixteen lanes at a time. Selectors whose high bits are clear, which is most
// of them, need no signs.
template <bool Signs>
struct Permuted {
  static u32 apply(u32 a, u32 b, u32 c) {
    u32 r = 0;
    for (unsigned k = 0; k < 4; ++k) {
      const u32 select = c >> (4 * k);
      const u32 word = (select & 4) != 0 ? b : a;
      const u32 moved = word >> (8 * (select & 3));
      const u32 sign = 0u - (moved >> 7 & 1);
      r |= ((Signs && (select & 8) != 0 ? sign : moved) & 0xff) << (8 * k);
    }
    return r;
  }
};
using Prmt = Permuted<true>;
inline const Inst* permute(const Inst& i, Warp& w, Mask mask) {
  const u32* select = w.at<const u32>(i.c);
  const bool signs = mask_of([=](unsigned l) { return (select[l] & 0x8888) != 0; }) != 0;
  return signs ? ternary<u32, u32, u32, u32, Permuted<true>>(i, w, mask)
               : ternary<u32, u32, u32, u32, Permuted<false>>(i, w, mask);
}
enum class PrmtMode { f4e, b4e, rc8, ecl, ecr, rc16 };
template <PrmtMode M>
struct PrmtBy {
  static u32 apply(u32 a, u32 b, u32 c) {
    static constexpr unsigned kSelect[6][4] = {{0x3210, 0x4321, 0x5432, 0x6543}, {0x5670, 0x6701, 0x7012, 0x0123},
                                               {0x0000, 0x1111, 0x2222, 0x3333}, {0x3210, 0x3211, 0x3222, 0x3333},
                                               {0x0000, 0x1110, 0x2210, 0x3210}, {0x1010, 0x3232, 0x1010, 0x3232}};
    return Prmt::apply(a, b, kSelect[static_cast<int>(M)][c & 3]);
  }
};

// The 32-bit forms look at the low byte of position and length, the 64-bit forms at all of it.
template <class T>
struct Bfi {
  static T apply(T a, T b, u32 position, u32 length) {
    constexpr u32 width = 8 * sizeof(T);
    if (width == 32) position &= 0xff, length &= 0xff;
    if (position >= width || length == 0) return b;
    const u32 fits = length > width - position ? width - position : length;
    const T field = (fits >= width ? ~T{0} : static_cast<T>((T{1} << fits) - 1)) << position;
    return (b & ~field) | ((a << position) & field);
  }
};
template <class T>
struct Bfe {
  static T apply(T a, u32 position, u32 length) {
    using U = std::make_unsigned_t<T>;
    constexpr u32 width = 8 * sizeof(T), top = width - 1;
    if (width == 32) position &= 0xff, length &= 0xff;
    if (length == 0) return 0;
    bool sign = false;
    if constexpr (std::is_signed_v<T>) {
      const u64 end = u64{position} + length - 1;
      const u32 last = end > top ? top : static_cast<u32>(end);
      sign = static_cast<U>(a) >> last & 1;
    }
    U r = sign ? ~U{0} : U{0};
    for (u32 k = 0; k < length && k <= top && position <= top - k; ++k) {
      const U bit = static_cast<U>(a) >> (position + k) & 1;
      r = (r & ~(U{1} << k)) | bit << k;
    }
    return static_cast<T>(r);
  }
};
template <class T, bool Shift>
struct Bfind {
  static u32 apply(T a) {
    using U = std::make_unsigned_t<T>;
    U v = static_cast<U>(a);
    if constexpr (std::is_signed_v<T>)
      if (a < 0) v = ~v;
    if (v == 0) return 0xffffffffu;
    const u32 top = 8 * sizeof(T) - 1 - static_cast<u32>(std::countl_zero(v));
    return Shift ? 8 * sizeof(T) - 1 - top : top;
  }
};
struct Brev32 {
  static u32 apply(u32 v) {
    v = (v >> 1 & 0x55555555u) | (v & 0x55555555u) << 1;
    v = (v >> 2 & 0x33333333u) | (v & 0x33333333u) << 2;
    v = (v >> 4 & 0x0f0f0f0fu) | (v & 0x0f0f0f0fu) << 4;
    return __builtin_bswap32(v);
  }
};
struct Brev64 {
  static u64 apply(u64 v) {
    return u64{Brev32::apply(static_cast<u32>(v))} << 32 | Brev32::apply(static_cast<u32>(v >> 32));
  }
};
template <class T>
struct Clz {
  static u32 apply(T v) { return static_cast<u32>(std::countl_zero(v)); }
};
template <class T>
struct Popc {
  static u32 apply(T v) { return static_cast<u32>(std::popcount(v)); }
};

// Find the n-th set bit of `mask`, from `base` upwards (offset > 0) or downwards (offset < 0).
struct Fns {
  static u32 apply(u32 mask, u32 base, s32 offset) {
    if (offset == 0) return base < 32 && (mask >> base & 1) ? base : 0xffffffffu;
    if (offset == INT32_MIN) return 0;
    const int step = offset > 0 ? 1 : -1;
    s32 left = offset > 0 ? offset : -offset;
    for (s64 k = base; k >= 0 && k < 32; k += step)
      if (mask >> k & 1)
        if (--left == 0) return static_cast<u32>(k);
    return 0xffffffffu;
  }
};
template <bool Clamp>
struct Bmsk {
  static u32 apply(u32 from, u32 width) {
    if (Clamp) {
      if (from > 31) return 0;
      const u32 w = width > 32 ? 32 : width;
      return static_cast<u32>(((u64{1} << w) - 1) << from);
    }
    return static_cast<u32>(((u64{1} << (width & 31)) - 1) << (from & 31));
  }
};
template <class T, bool Clamp>
struct Szext {
  static u32 apply(T a, u32 n) {
    if (!Clamp) n &= 31;
    if (n == 0) return 0;
    if (n >= 32) return static_cast<u32>(a);
    if constexpr (std::is_signed_v<T>)
      return static_cast<u32>(static_cast<s32>(static_cast<u32>(a) << (32 - n)) >> (32 - n));
    else return static_cast<u32>(a) << (32 - n) >> (32 - n);
  }
};

}  // namespace machine::lane_bits
