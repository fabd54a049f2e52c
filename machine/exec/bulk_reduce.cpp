#include "exec/bulk_reduce.hpp"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include <xmmintrin.h>

#include "exec/real_reductions.hpp"

namespace machine {
namespace {

using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;

template <class T, T (*F)(T, T)>
void each(std::byte* to, const std::byte* from, std::size_t bytes) {
  for (std::size_t at = 0; at + sizeof(T) <= bytes; at += sizeof(T)) {
    T a, b;
    std::memcpy(&a, to + at, sizeof a);
    std::memcpy(&b, from + at, sizeof b);
    a = F(a, b);
    std::memcpy(to + at, &a, sizeof a);
  }
}

// The same in the floating-point mode of reductions: to nearest, with subnormal values.
template <class T, T (*F)(T, T)>
void each_real(std::byte* to, const std::byte* from, std::size_t bytes) {
  constexpr unsigned kUsual = 0x1f80;
  const unsigned mode = _mm_getcsr();
  _mm_setcsr(kUsual);
  each<T, F>(to, from, bytes);
  _mm_setcsr(mode);
}

template <class T>
T add(T a, T b) {
  return static_cast<T>(static_cast<std::make_unsigned_t<T>>(a) + static_cast<std::make_unsigned_t<T>>(b));
}
template <class T>
T least(T a, T b) {
  return std::min(a, b);
}
template <class T>
T most(T a, T b) {
  return std::max(a, b);
}
template <class T>
T both(T a, T b) {
  return a & b;
}
template <class T>
T either(T a, T b) {
  return a | b;
}
template <class T>
T different(T a, T b) {
  return a ^ b;
}
u32 inc(u32 a, u32 b) { return a >= b ? 0 : a + 1; }
u32 dec(u32 a, u32 b) { return a == 0 || a > b ? b : a - 1; }

template <class T>
Reducer integer(BulkReduction operation) {
  switch (operation) {
    case BulkReduction::add: return each<T, add<T>>;
    case BulkReduction::min: return each<T, least<T>>;
    case BulkReduction::max: return each<T, most<T>>;
    default: return nullptr;
  }
}
template <class T>
Reducer bitwise(BulkReduction operation) {
  switch (operation) {
    case BulkReduction::and_: return each<T, both<T>>;
    case BulkReduction::or_: return each<T, either<T>>;
    case BulkReduction::xor_: return each<T, different<T>>;
    default: return nullptr;
  }
}
template <class H>
Reducer half(BulkReduction operation) {
  switch (operation) {
    case BulkReduction::add: return each_real<u16, add_half<H>>;
    case BulkReduction::min: return each_real<u16, choose_half<H, false>>;
    case BulkReduction::max: return each_real<u16, choose_half<H, true>>;
    default: return nullptr;
  }
}

}  // namespace

Reducer bulk_reducer(BulkReduction operation, Type type, bool flush) {
  switch (type) {
    case Type::u32:
      return operation == BulkReduction::inc   ? each<u32, inc>
             : operation == BulkReduction::dec ? each<u32, dec>
                                               : integer<u32>(operation);
    case Type::s32: return integer<std::int32_t>(operation);
    case Type::u64: return integer<u64>(operation);
    case Type::s64: return integer<std::int64_t>(operation);
    case Type::b32: return bitwise<u32>(operation);
    case Type::b64: return bitwise<u64>(operation);
    case Type::f16: return half<Half>(operation);
    case Type::bf16: return half<Bfloat>(operation);
    case Type::f32:
      if (operation != BulkReduction::add) return nullptr;
      return flush ? each_real<u32, add_f32<true>> : each_real<u32, add_f32<false>>;
    case Type::f64: return operation == BulkReduction::add ? each_real<u64, add_f64> : nullptr;
    default: return nullptr;
  }
}

}  // namespace machine
