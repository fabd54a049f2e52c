// Thirty-two lanes at a time: the loops that every handler is made of.
#pragma once

#include <cstring>
#include <type_traits>

#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512DQ__) && defined(__AVX512VL__)
#include <immintrin.h>
#define MACHINE_AVX512 1
#else
#define MACHINE_AVX512 0
#endif

#include "exec/warp.hpp"

namespace machine {

// d[l] = t[l] for the lanes in `mask`.
template <class T>
inline void blend(T* d, const T* t, Mask mask) {
#if MACHINE_AVX512
  if constexpr (sizeof(T) == 8) {
    for (unsigned g = 0; g < 4; ++g)
      _mm512_mask_storeu_epi64(d + 8 * g, static_cast<__mmask8>(mask >> (8 * g)), _mm512_loadu_si512(t + 8 * g));
  } else if constexpr (sizeof(T) == 4) {
    for (unsigned g = 0; g < 2; ++g)
      _mm512_mask_storeu_epi32(d + 16 * g, static_cast<__mmask16>(mask >> (16 * g)), _mm512_loadu_si512(t + 16 * g));
  } else {
    static_assert(sizeof(T) == 2);
    _mm512_mask_storeu_epi16(d, mask, _mm512_loadu_si512(t));
  }
#else
  for (unsigned l = 0; l < kWarp; ++l) d[l] = (mask >> l) & 1 ? t[l] : d[l];
#endif
}

// d[l] = f(l) for the lanes in `mask`. d may be one of the arrays that f reads.
template <class D, class F>
[[gnu::always_inline]] inline void each_lane(D* d, Mask mask, F f) {
  if (mask == kFullMask) [[likely]] {
#pragma GCC ivdep
    for (unsigned l = 0; l < kWarp; ++l) d[l] = f(l);
  } else {
    alignas(64) D t[kWarp];
#pragma GCC ivdep
    for (unsigned l = 0; l < kWarp; ++l) t[l] = f(l);
    blend(d, t, mask);
  }
}

// Bit l: f(l), for a vectorisable comparison.
template <class F>
[[gnu::always_inline]] inline Mask mask_of(F f) {
  alignas(64) std::uint8_t t[kWarp];
#pragma GCC ivdep
  for (unsigned l = 0; l < kWarp; ++l) t[l] = f(l) ? 0xff : 0;
#if MACHINE_AVX512
  return static_cast<Mask>(_mm256_movemask_epi8(_mm256_load_si256(reinterpret_cast<const __m256i*>(t))));
#else
  Mask m = 0;
  for (unsigned l = 0; l < kWarp; ++l) m |= static_cast<Mask>(t[l] & 1) << l;
  return m;
#endif
}

inline void set_predicate(Warp& w, Slot d, Mask value, Mask mask) {
  Mask& p = *w.at<Mask>(d);
  p = (p & ~mask) | (value & mask);
}

template <class F>
inline void for_lanes(Mask mask, F f) {
  for (Mask rest = mask; rest != 0; rest &= rest - 1) f(static_cast<unsigned>(std::countr_zero(rest)));
}

// ---- handlers made of one expression -----------------------------------------------------------------------------

// D = F::apply(A), D = F::apply(A, B), ...
template <class D, class A, class F>
const Inst* unary(const Inst& i, Warp& w, Mask mask) {
  const A* a = w.at<const A>(i.a);
  each_lane(w.at<D>(i.d), mask, [=](unsigned l) { return static_cast<D>(F::apply(a[l])); });
  return &i + 1;
}
template <class D, class A, class B, class F>
const Inst* binary(const Inst& i, Warp& w, Mask mask) {
  const A* a = w.at<const A>(i.a);
  const B* b = w.at<const B>(i.b);
  each_lane(w.at<D>(i.d), mask, [=](unsigned l) { return static_cast<D>(F::apply(a[l], b[l])); });
  return &i + 1;
}
template <class D, class A, class B, class C, class F>
const Inst* ternary(const Inst& i, Warp& w, Mask mask) {
  const A* a = w.at<const A>(i.a);
  const B* b = w.at<const B>(i.b);
  const C* c = w.at<const C>(i.c);
  each_lane(w.at<D>(i.d), mask, [=](unsigned l) { return static_cast<D>(F::apply(a[l], b[l], c[l])); });
  return &i + 1;
}

}  // namespace machine
