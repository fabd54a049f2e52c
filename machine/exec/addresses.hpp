// The addresses of 32 lanes: formed from a register and an offset, and how they lie to each other.
#pragma once

#include "exec/lanes.hpp"
#include "memory/address_space.hpp"

namespace machine {

#if MACHINE_AVX512

// The addresses of an access eight by eight, as they were formed. Looking at them here and not in memory matters:
// reading back what was just written, shifted by a lane, waits until the write is done.
using AddressVectors = __m512i[4];

// Shape and breaks of an access whose lanes, width and address are set.
inline void classify(Access& a, const AddressVectors& v) {
  const __m512i step = _mm512_set1_epi64(a.width);
  Mask jumps = 0;
  for (unsigned g = 0; g < 4; ++g) {
    const __m512i before = _mm512_alignr_epi64(v[g], v[g == 0 ? 0 : g - 1], 7);
    jumps |= static_cast<Mask>(_mm512_cmpneq_epi64_mask(v[g], _mm512_add_epi64(before, step))) << (8 * g);
  }
  a.breaks = (jumps | ~(a.lanes << 1)) & a.lanes;
  a.shape = Shape::scattered;
  if (a.breaks == 1 && a.lanes == kFullMask) {
    a.shape = Shape::contiguous;
  } else if (a.breaks == a.lanes) {
    const __m512i first = _mm512_set1_epi64(static_cast<long long>(a.address[a.first_lane()]));
    Mask different = 0;
    for (unsigned g = 0; g < 4; ++g) different |= static_cast<Mask>(_mm512_cmpneq_epi64_mask(v[g], first)) << (8 * g);
    if ((different & a.lanes) == 0) a.shape = Shape::uniform;
  }
}

inline void classify(Access& a) {
  AddressVectors v;
  for (unsigned g = 0; g < 4; ++g) v[g] = _mm512_loadu_si512(a.address + 8 * g);
  classify(a, v);
}

#else

// Shape and breaks of an access whose lanes, width and address are set.
inline void classify(Access& a) {
  Mask jumps = 0, different = 0;
  const std::uint64_t first = a.address[a.first_lane()];
  for (unsigned l = 1; l < kWarp; ++l) jumps |= static_cast<Mask>(a.address[l] != a.address[l - 1] + a.width) << l;
  for (unsigned l = 0; l < kWarp; ++l) different |= static_cast<Mask>(a.address[l] != first) << l;
  a.breaks = (jumps | ~(a.lanes << 1)) & a.lanes;
  const bool one_run = a.breaks == 1 && a.lanes == kFullMask,
             one_place = a.breaks == a.lanes && (different & a.lanes) == 0;
  a.shape = one_run ? Shape::contiguous : one_place ? Shape::uniform : Shape::scattered;
}

#endif

// The register that addresses come from, and what is added to it.
struct AddressSource {
  Slot base = 0;
  unsigned width = 8;  // bytes of the register
  std::int64_t offset = 0;
  bool narrow = false;       // register and offset give 32 bits, as shared memory's addresses have
  std::uint64_t origin = 0;  // added then: where the storage begins
};

inline AddressSource shared_source(const Warp& w, Slot base, unsigned width, std::int64_t offset) {
  return {base, width, offset, true, w.block->info.shared};
}
// Generic addresses that must lie in the window of shared memory.
inline AddressSource shared_window_source(const Warp& w, Slot base, unsigned width, std::int64_t offset) {
  return {base, width, offset, false, w.block->info.shared - kSharedWindow};
}

// address[l] for every lane, and shape and breaks of `a`, whose lanes and width are set.
inline void form(const Warp& w, const AddressSource& from, std::uint64_t* address, Access& a) {
  a.address = address;
#if MACHINE_AVX512
  AddressVectors v;
  const __m512i origin = _mm512_set1_epi64(static_cast<long long>(from.origin));
  if (from.width == 8) {
    const auto* base = w.at<const std::uint64_t>(from.base);
    const __m512i offset = _mm512_set1_epi64(from.offset), kept = _mm512_set1_epi64(from.narrow ? 0xffffffffll : -1ll);
    for (unsigned g = 0; g < 4; ++g)
      v[g] =
          _mm512_add_epi64(origin, _mm512_and_si512(kept, _mm512_add_epi64(_mm512_load_si512(base + 8 * g), offset)));
  } else {
    const auto* base = w.at<const std::uint32_t>(from.base);
    const __m256i offset = _mm256_set1_epi32(static_cast<int>(from.offset));
    for (unsigned g = 0; g < 4; ++g) {
      const __m256i sum = _mm256_add_epi32(_mm256_load_si256(reinterpret_cast<const __m256i*>(base + 8 * g)), offset);
      v[g] = _mm512_add_epi64(origin, _mm512_cvtepu32_epi64(sum));
    }
  }
  for (unsigned g = 0; g < 4; ++g) _mm512_store_si512(address + 8 * g, v[g]);
  classify(a, v);
#else
  if (from.width == 8) {
    const auto* base = w.at<const std::uint64_t>(from.base);
    const std::uint64_t kept = from.narrow ? 0xffffffffu : ~std::uint64_t{0};
    for (unsigned l = 0; l < kWarp; ++l)
      address[l] = from.origin + ((base[l] + static_cast<std::uint64_t>(from.offset)) & kept);
  } else {
    const auto* base = w.at<const std::uint32_t>(from.base);
    for (unsigned l = 0; l < kWarp; ++l)
      address[l] = from.origin + static_cast<std::uint32_t>(base[l] + static_cast<std::uint32_t>(from.offset));
  }
  classify(a);
#endif
}

}  // namespace machine
