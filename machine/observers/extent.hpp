// How the addresses of one access lie, over all lanes at once.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#if defined(__AVX512F__)
#include <immintrin.h>
#endif

#include "events/access.hpp"

namespace machine::checks {

// All bytes of an access lie in [low, high).
struct Extent {
  std::uint64_t low = 0, high = 0;
  std::uint64_t bytes() const { return high - low; }
};

inline Extent extent_of(const Access& a) {
  if (a.shape == Shape::contiguous) return {a.address[0], a.address[0] + std::uint64_t{a.width} * kWarp};
  const std::uint64_t first = a.address[a.first_lane()];
  if (a.shape == Shape::uniform) return {first, first + a.width};
  std::uint64_t low = first, high = first;
#if defined(__AVX512F__)
  const __m512i inner = _mm512_set1_epi64(static_cast<long long>(first));
  __m512i lows = inner, highs = inner;
  for (unsigned g = 0; g < 4; ++g) {
    const __m512i v = _mm512_mask_loadu_epi64(inner, static_cast<__mmask8>(a.lanes >> (8 * g)), a.address + 8 * g);
    lows = _mm512_min_epu64(lows, v), highs = _mm512_max_epu64(highs, v);
  }
  low = _mm512_reduce_min_epu64(lows), high = _mm512_reduce_max_epu64(highs);
#else
  for (unsigned l = 0; l < kWarp; ++l) {
    const std::uint64_t v = (a.lanes >> l & 1) != 0 ? a.address[l] : first;
    low = std::min(low, v), high = std::max(high, v);
  }
#endif
  return {low, high + a.width};
}

// Whether the lanes touch every byte of the extent, each of them once: rows that a swizzle permutes do, for example.
// Only for accesses that are aligned to their width.
inline bool fills(const Access& a, const Extent& e) {
  if (a.shape == Shape::contiguous) return true;
  const unsigned lanes = static_cast<unsigned>(std::popcount(a.lanes)),
                 shift = static_cast<unsigned>(std::countr_zero(a.width));
  if (e.bytes() != std::uint64_t{a.width} * lanes) return false;
  Mask places = 0;
#if defined(__AVX512F__)
  const __m512i low = _mm512_set1_epi64(static_cast<long long>(e.low)), one = _mm512_set1_epi64(1);
  __m512i found = _mm512_setzero_si512();
  for (unsigned g = 0; g < 4; ++g) {
    const __m512i place = _mm512_srli_epi64(_mm512_sub_epi64(_mm512_loadu_si512(a.address + 8 * g), low), shift);
    found =
        _mm512_mask_or_epi64(found, static_cast<__mmask8>(a.lanes >> (8 * g)), found, _mm512_sllv_epi64(one, place));
  }
  places = static_cast<Mask>(_mm512_reduce_or_epi64(found));
#else
  for (unsigned l = 0; l < kWarp; ++l)
    if ((a.lanes >> l & 1) != 0) places |= Mask{1} << ((a.address[l] - e.low) >> shift);
#endif
  return static_cast<unsigned>(std::popcount(places)) == lanes;
}

// Lanes that do not go on where their neighbour below ended, or whose neighbour takes no part.
inline Mask breaks_of(const std::uint64_t* address, Mask lanes, std::uint32_t width) {
  Mask jumps = 0;
#if defined(__AVX512F__)
  const __m512i step = _mm512_set1_epi64(width);
  for (unsigned g = 0; g < 4; ++g) {
    const __mmask8 inside = g == 0 ? 0xfe : 0xff;  // nothing lies before lane 0
    const __m512i here = _mm512_loadu_si512(address + 8 * g);
    const __m512i before = _mm512_maskz_loadu_epi64(inside, address + 8 * g - 1);
    jumps |= static_cast<Mask>(_mm512_cmpneq_epi64_mask(here, _mm512_add_epi64(before, step))) << (8 * g);
  }
#else
  for (unsigned l = 1; l < kWarp; ++l) jumps |= static_cast<Mask>(address[l] != address[l - 1] + width) << l;
#endif
  return (jumps | ~(lanes << 1)) & lanes;
}

// Lanes at the address of their neighbour below, whether or not that takes part.
inline Mask repeats_of(const std::uint64_t* address) {
  Mask same = 0;
#if defined(__AVX512F__)
  for (unsigned g = 0; g < 4; ++g) {
    const __mmask8 inside = g == 0 ? 0xfe : 0xff;  // nothing lies before lane 0
    const __m512i before = _mm512_maskz_loadu_epi64(inside, address + 8 * g - 1);
    same |= static_cast<Mask>(_mm512_mask_cmpeq_epi64_mask(inside, _mm512_loadu_si512(address + 8 * g), before))
            << (8 * g);
  }
#else
  for (unsigned l = 1; l < kWarp; ++l) same |= static_cast<Mask>(address[l] == address[l - 1]) << l;
#endif
  return same;
}

// The same access by fewer lanes.
inline Access narrowed(const Access& a, Mask lanes) {
  Access b = a;
  b.lanes = lanes;
  b.breaks = lanes == 0 ? 0 : breaks_of(a.address, lanes, a.width);
  if (a.shape != Shape::uniform) b.shape = b.breaks == 1 && lanes == kFullMask ? Shape::contiguous : Shape::scattered;
  return b;
}

}  // namespace machine::checks
