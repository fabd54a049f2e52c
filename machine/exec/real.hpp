// Scalar pieces of floating-point arithmetic that vectorise: flushing, canonical NaN, saturation, halves.
//
// Rounding mode and flush-to-zero of f32 and f64 arithmetic are those of the host register, which the decoder sets with
// need_mode(); what works on bits is done here.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace machine {

inline std::uint32_t bits_of(float v) { return std::bit_cast<std::uint32_t>(v); }
inline std::uint64_t bits_of(double v) { return std::bit_cast<std::uint64_t>(v); }
inline float float_of(std::uint32_t b) { return std::bit_cast<float>(b); }
inline double double_of(std::uint64_t b) { return std::bit_cast<double>(b); }

inline constexpr std::uint32_t kNan32 = 0x7fffffff;
inline constexpr std::uint16_t kNan16 = 0x7fff;  // f16 and bf16

inline double quieted(double v) { return double_of(bits_of(v) | 0x0008000000000000u); }
inline float quieted(float v) { return float_of(bits_of(v) | 0x00400000u); }

// Results that are NaN have one pattern in f32.
inline float canonical(float v) { return v != v ? float_of(kNan32) : v; }
inline double canonical(double v) { return v; }

// Subnormal to zero of the same sign.
inline float flushed(float v) {
  const std::uint32_t b = bits_of(v);
  return float_of((b & 0x7f800000u) == 0 ? b & 0x80000000u : b);
}
inline double flushed(double v) { return v; }

// .sat: [0, 1], NaN becomes +0.
template <class T>
inline T saturated(T v) {
  return v > T{0} ? (v < T{1} ? v : T{1}) : T{0};
}

// ---- halves ------------------------------------------------------------------------------------------------------

inline float half_to_float(std::uint16_t h) {
  const std::uint32_t magnitude = h & 0x7fffu, sign = std::uint32_t{h & 0x8000u} << 16;
  const std::uint32_t normal = (magnitude << 13) + (112u << 23);
  const std::uint32_t special = (magnitude << 13) | 0x7f800000u;
  const std::uint32_t tiny = bits_of(static_cast<float>(static_cast<std::int32_t>(magnitude)) * 0x1p-24f);
  return float_of(sign | (magnitude >= 0x7c00u ? special : magnitude >= 0x400u ? normal : tiny));
}
inline float bfloat_to_float(std::uint16_t h) { return float_of(std::uint32_t{h} << 16); }

// Round to nearest even; the host must be in round-to-nearest mode.
inline std::uint16_t float_to_half(float v) {
  const std::uint32_t b = bits_of(v), magnitude = b & 0x7fffffffu;
  const std::uint32_t rebased = magnitude - (112u << 23);
  const std::uint32_t normal = (rebased + 0xfffu + ((rebased >> 13) & 1u)) >> 13;
  const std::uint32_t tiny = bits_of(float_of(magnitude < 0x38800000u ? magnitude : 0u) + 0.5f) - 0x3f000000u;
  const std::uint32_t finite = magnitude < 0x38800000u ? tiny : normal;
  const std::uint32_t signed_ = (magnitude >= 0x477ff000u ? 0x7c00u : finite) | ((b >> 16) & 0x8000u);
  return static_cast<std::uint16_t>(magnitude > 0x7f800000u ? kNan16 : signed_);
}
inline std::uint16_t float_to_bfloat(float v) {
  const std::uint32_t b = bits_of(v);
  const std::uint32_t rounded = (b + 0x7fffu + ((b >> 16) & 1u)) >> 16;
  return static_cast<std::uint16_t>((b & 0x7fffffffu) > 0x7f800000u ? kNan16 : rounded);
}

struct Half {
  static float widen(std::uint16_t h) { return half_to_float(h); }
  static std::uint16_t narrow(float v) { return float_to_half(v); }
  static constexpr std::uint16_t kSmallestNormal = 0x0400;
};
struct Bfloat {
  static float widen(std::uint16_t h) { return bfloat_to_float(h); }
  static std::uint16_t narrow(float v) { return float_to_bfloat(v); }
  static constexpr std::uint16_t kSmallestNormal = 0x0080;
};

// a * b + c with one rounding to float that keeps "not exact" in the last bit (round to odd), so that a further
// rounding to at most 22 bits is right.
inline float fma_to_odd(float a, float b, float c) {
  const double product = static_cast<double>(a) * b;  // exact: 48 bits
  const double sum = product + c;
  const double back = sum - product;
  const double lost = (product - (sum - back)) + (c - back);  // exact (Knuth)
  // double to float by truncation, the sticky bit into the last place
  const float nearest = static_cast<float>(sum);
  // its sign says on which side the true value lies
  const double difference = (sum - static_cast<double>(nearest)) + lost;
  const std::uint32_t n = bits_of(nearest);
  const bool finite = (n & 0x7f800000u) != 0x7f800000u;
  const bool inexact = difference != 0.0;
  // nearest is above the true magnitude: step towards zero first
  const bool above = inexact && ((difference < 0) == (nearest > 0)) && (n & 0x7fffffffu) != 0;
  const std::uint32_t truncated = above ? n - 1 : n;
  return float_of(finite && inexact ? truncated | 1u : n);
}

}  // namespace machine
