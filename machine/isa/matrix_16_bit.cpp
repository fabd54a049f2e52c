// mma.m16n8k16 of f16 or bf16 operands with f32 sums, which decoding kernels spend their time in, by whole registers.
//
// The fragments are matrices already: a register of A holds 8 rows of 8 columns in memory order, one of B the same of
// its transpose, a pair of C or D the even and the odd columns of 8 rows. So registers are converted at once, and a row
// of D is one vector. Sums are those of ops_matrix.cpp: in double, k ascending, rounded once towards zero. Products of
// 16-bit numbers are exact in double: there is one rounding an addition, fused or not.
#include <cstring>

#include "exec/lanes.hpp"
#include "exec/real.hpp"
#include "isa/matrix.hpp"

namespace machine {
namespace {

using u16 = std::uint16_t;
using u32 = std::uint32_t;

#if MACHINE_AVX512

struct HalfOperand {
  static __m512 floats(__m256i raw) { return _mm512_cvtph_ps(raw); }
};
struct BfloatOperand {
  static __m512 floats(__m256i raw) { return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(raw), 16)); }
};

__m512d low_doubles(__m512 v) { return _mm512_cvtps_pd(_mm512_castps512_ps256(v)); }
__m512d high_doubles(__m512 v) { return _mm512_cvtps_pd(_mm512_extractf32x8_ps(v, 1)); }

// Columns of D lie even ones first, as its registers do: 0 2 4 6 1 3 5 7.
constexpr unsigned column_at(unsigned place) { return place % 4 * 2 + place / 4; }

// Where rows 0 to 3 of a register of B, transposed, come from; rows 4 to 7 are four elements on.
struct Transposition {
  alignas(64) u16 from[32];
};
constexpr Transposition transposition() {
  Transposition t{};
  for (unsigned k = 0; k < 4; ++k)
    for (unsigned p = 0; p < 8; ++p) t.from[k * 8 + p] = static_cast<u16>(column_at(p) * 8 + k);
  return t;
}
constexpr Transposition kTransposition = transposition();

// Two rows to float: towards zero, but to infinity what rounding to nearest takes there; NaN has one pattern.
__m512 rounded(__m512d first, __m512d second) {
  constexpr int kTruncate = _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC,
                kNearest = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
  __m512 v = _mm512_insertf32x8(_mm512_castps256_ps512(_mm512_cvt_roundpd_ps(first, kTruncate)),
                                _mm512_cvt_roundpd_ps(second, kTruncate), 1);
  v = _mm512_mask_mov_ps(v, _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q), _mm512_castsi512_ps(_mm512_set1_epi32(kNan32)));
  const __mmask16 largest = _mm512_cmpeq_epi32_mask(
      _mm512_and_si512(_mm512_castps_si512(v), _mm512_set1_epi32(0x7fffffff)), _mm512_set1_epi32(0x7f7fffff));
  if (largest != 0) [[unlikely]] {
    const __m512 n = _mm512_insertf32x8(_mm512_castps256_ps512(_mm512_cvt_roundpd_ps(first, kNearest)),
                                        _mm512_cvt_roundpd_ps(second, kNearest), 1);
    v = _mm512_mask_mov_ps(v, largest, n);
  }
  return v;
}

template <class Format>
void multiply(const Warp& w, const Slot* d, const Slot* a, const Slot* b, const Slot* c) {
  alignas(64) double left[16][16];
  for (unsigned reg = 0; reg < 4; ++reg) {
    const u16* part = w.at<const u16>(a[reg]);
    for (unsigned r = 0; r < 8; r += 2) {
      const __m512 rows = Format::floats(_mm256_load_si256(reinterpret_cast<const __m256i*>(part + r * 8)));
      double* to = &left[reg % 2 * 8 + r][reg / 2 * 8];
      _mm512_store_pd(to, low_doubles(rows));
      _mm512_store_pd(to + 16, high_doubles(rows));
    }
  }
  __m512d right[16];
  const __m512i upper = _mm512_load_si512(kTransposition.from), lower = _mm512_add_epi16(upper, _mm512_set1_epi16(4));
  for (unsigned reg = 0; reg < 2; ++reg) {
    const u16* part = w.at<const u16>(b[reg]);
    const __m512i x = _mm512_load_si512(part), y = _mm512_load_si512(part + 32);
    for (unsigned half = 0; half < 2; ++half) {
      const __m512i t = _mm512_permutex2var_epi16(x, half == 0 ? upper : lower, y);
      const __m512 first = Format::floats(_mm512_castsi512_si256(t)),
                   second = Format::floats(_mm512_extracti64x4_epi64(t, 1));
      __m512d* to = right + reg * 8 + half * 4;
      to[0] = low_doubles(first), to[1] = high_doubles(first), to[2] = low_doubles(second),
      to[3] = high_doubles(second);
    }
  }
  __m512 result[4][2];  // the registers of D, which may be those of C: written when all of it has been read
  for (unsigned half = 0; half < 2; ++half) {
    const float *even = w.at<const float>(c[half * 2]), *odd = w.at<const float>(c[half * 2 + 1]);
    __m512d sum[8];
    for (unsigned r = 0; r < 8; ++r)
      sum[r] = _mm512_cvtps_pd(_mm256_set_m128(_mm_load_ps(odd + r * 4), _mm_load_ps(even + r * 4)));
    for (unsigned k = 0; k < 16; ++k)
      for (unsigned r = 0; r < 8; ++r)
        sum[r] = _mm512_fmadd_pd(_mm512_set1_pd(left[half * 8 + r][k]), right[k], sum[r]);
    for (unsigned g = 0; g < 2; ++g) {
      const __m512 x = rounded(sum[g * 4], sum[g * 4 + 1]), y = rounded(sum[g * 4 + 2], sum[g * 4 + 3]);
      result[half * 2][g] = _mm512_shuffle_f32x4(x, y, 0x88);
      result[half * 2 + 1][g] = _mm512_shuffle_f32x4(x, y, 0xdd);
    }
  }
  for (unsigned reg = 0; reg < 4; ++reg)
    for (unsigned g = 0; g < 2; ++g) _mm512_store_ps(w.at<float>(d[reg]) + 16 * g, result[reg][g]);
}

#else

struct HalfOperand {
  static float value(u16 raw) { return half_to_float(raw); }
};
struct BfloatOperand {
  static float value(u16 raw) { return bfloat_to_float(raw); }
};

template <class Format>
void multiply(const Warp& w, const Slot* d, const Slot* a, const Slot* b, const Slot* c) {
  using Row = double __attribute__((vector_size(64)));  // the compiler splits it where vectors are shorter
  alignas(64) double left[16][16], right[16][8], sum[16][8];
  for (unsigned reg = 0; reg < 4; ++reg) {
    const u16* part = w.at<const u16>(a[reg]);
    for (unsigned r = 0; r < 8; ++r)
      for (unsigned k = 0; k < 8; ++k) left[reg % 2 * 8 + r][reg / 2 * 8 + k] = Format::value(part[r * 8 + k]);
  }
  for (unsigned reg = 0; reg < 2; ++reg) {
    const u16* part = w.at<const u16>(b[reg]);
    for (unsigned k = 0; k < 8; ++k)
      for (unsigned n = 0; n < 8; ++n) right[reg * 8 + k][n] = Format::value(part[n * 8 + k]);
  }
  for (unsigned half = 0; half < 2; ++half) {
    const float *even = w.at<const float>(c[half * 2]), *odd = w.at<const float>(c[half * 2 + 1]);
    for (unsigned lane = 0; lane < 32; ++lane) {
      sum[half * 8 + lane / 4][lane % 4 * 2] = even[lane];
      sum[half * 8 + lane / 4][lane % 4 * 2 + 1] = odd[lane];
    }
  }
  for (unsigned r = 0; r < 16; r += 4) {
    Row s[4];
    std::memcpy(s, sum[r], sizeof s);
    for (unsigned k = 0; k < 16; ++k) {
      Row column;
      std::memcpy(&column, right[k], sizeof column);
      for (unsigned q = 0; q < 4; ++q) s[q] += left[r + q][k] * column;
    }
    std::memcpy(sum[r], s, sizeof s);
  }
  for (unsigned half = 0; half < 2; ++half) {
    u32 *even = w.at<u32>(d[half * 2]), *odd = w.at<u32>(d[half * 2 + 1]);
    for (unsigned lane = 0; lane < 32; ++lane) {
      even[lane] = bits_of(canonical(truncated(sum[half * 8 + lane / 4][lane % 4 * 2])));
      odd[lane] = bits_of(canonical(truncated(sum[half * 8 + lane / 4][lane % 4 * 2 + 1])));
    }
  }
}

#endif

}  // namespace

void multiply_halves(const Warp& w, const Slot* d, const Slot* a, const Slot* b, const Slot* c) {
  multiply<HalfOperand>(w, d, a, b, c);
}
void multiply_bfloats(const Warp& w, const Slot* d, const Slot* a, const Slot* b, const Slot* c) {
  multiply<BfloatOperand>(w, d, a, b, c);
}

}  // namespace machine
