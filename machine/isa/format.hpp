// Number formats narrower than float, by description: encoding with every rounding mode, and decoding.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace machine {

struct Format {
  int exponent_bits, mantissa_bits, bias;
  std::uint32_t largest;   // code of the largest finite value, without sign
  std::uint32_t infinity;  // code of infinity; 0: none
  std::uint32_t nan;       // canonical NaN (may carry the sign bit); 0: none
  constexpr int bits() const { return 1 + exponent_bits + mantissa_bits; }
};
inline constexpr Format kF16{5, 10, 15, 0x7bff, 0x7c00, 0x7fff};
inline constexpr Format kBf16{8, 7, 127, 0x7f7f, 0x7f80, 0x7fff};
inline constexpr Format kTf32{8, 10, 127, 0x3fbff, 0x3fc00, 0x3ffff};
inline constexpr Format kE4m3{4, 3, 7, 0x7e, 0, 0x7f};
inline constexpr Format kE5m2{5, 2, 15, 0x7b, 0x7c, 0x7f};
inline constexpr Format kE2m1{2, 1, 1, 0x7, 0, 0};
inline constexpr Format kE2m3{2, 3, 1, 0x1f, 0, 0};
inline constexpr Format kE3m2{3, 2, 3, 0x1f, 0, 0};

// rounding: n nearest even, a nearest with ties away, z, m (down), p (up). finite: overflow and infinities give the
// largest finite value. NaN gives the format's NaN, or the largest finite value with a plus sign where it has none.
inline std::uint32_t encode(double v, const Format& f, char rounding, bool finite) {
  const std::uint32_t sign = std::signbit(v) ? std::uint32_t{1} << (f.bits() - 1) : 0;
  if (v != v) return f.nan != 0 ? f.nan : f.largest;
  const std::uint32_t over = finite || f.infinity == 0 ? (f.infinity == 0 && !finite ? f.nan : f.largest) : f.infinity;
  const double magnitude = std::fabs(v);
  if (magnitude == 0) return sign;
  if (magnitude > 1.7976931348623157e308) return sign | over;
  const auto raw = std::bit_cast<std::uint64_t>(magnitude);
  const int biased = static_cast<int>(raw >> 52);
  const std::uint64_t mantissa = (raw & ((std::uint64_t{1} << 52) - 1)) | (biased != 0 ? std::uint64_t{1} << 52 : 0);
  const int exponent = (biased != 0 ? biased : 1) - 1075;             // v = mantissa * 2^exponent
  const int top = exponent + 63 - std::countl_zero(mantissa);         // floor(log2 v)
  const int lowest = 1 - f.bias;                                      // exponent of the smallest normal
  const int place = (top < lowest ? lowest : top) - f.mantissa_bits;  // exponent of the last kept bit
  const int shift = place - exponent;
  std::uint64_t kept, half = 0, rest = 0;
  if (shift <= 0) {
    kept = mantissa << -shift;
  } else if (shift > 62) {
    kept = 0, rest = 1;
  } else {
    kept = mantissa >> shift;
    half = mantissa >> (shift - 1) & 1;
    rest = mantissa & ((std::uint64_t{1} << (shift - 1)) - 1);
  }
  const bool inexact = half != 0 || rest != 0, negative = sign != 0;
  bool up = false;
  switch (rounding) {
    case 'n': up = half != 0 && (rest != 0 || (kept & 1) != 0); break;
    case 'a': up = half != 0; break;
    case 'm': up = negative && inexact; break;
    case 'p': up = !negative && inexact; break;
    default: break;
  }
  kept += up ? 1 : 0;
  const std::uint64_t code = top < lowest ? kept
                                          : (static_cast<std::uint64_t>(top - lowest + 1) << f.mantissa_bits) + kept -
                                                (std::uint64_t{1} << f.mantissa_bits);
  if (code > f.largest) {
    // Directed rounding towards zero stops at the largest finite value.
    const bool stays = rounding == 'z' || (rounding == 'm' && !negative) || (rounding == 'p' && negative);
    return sign | (stays ? f.largest : over);
  }
  return sign | static_cast<std::uint32_t>(code);
}

inline double decode(std::uint32_t code, const Format& f) {
  const std::uint32_t sign_bit = std::uint32_t{1} << (f.bits() - 1), magnitude = code & (sign_bit - 1);
  const double sign = code & sign_bit ? -1.0 : 1.0;
  if (f.infinity != 0 && magnitude == f.infinity) return sign * __builtin_inf();
  if (magnitude > f.largest) return __builtin_nan("");
  const std::uint32_t mantissa = magnitude & ((1u << f.mantissa_bits) - 1);
  const int exponent = static_cast<int>(magnitude >> f.mantissa_bits);
  if (exponent == 0) return sign * std::ldexp(mantissa, 1 - f.bias - f.mantissa_bits);
  return sign * std::ldexp(mantissa + (1u << f.mantissa_bits), exponent - f.bias - f.mantissa_bits);
}

// E8M0: a power of two without sign; 0xFF is NaN, 0 is 2^-127.
inline std::uint32_t encode_e8m0(float v, bool up, bool finite) {
  const std::uint32_t b = std::bit_cast<std::uint32_t>(v) & 0x7fffffffu;
  if (b > 0x7f800000u) return 0xff;
  if (b == 0x7f800000u) return finite ? 0xfe : 0xff;
  const std::uint32_t exponent = b >> 23, mantissa = b & 0x7fffffu;
  const bool above = up && mantissa != 0 && !(exponent == 0 && mantissa <= 0x400000u);
  const std::uint32_t code = exponent + (above ? 1 : 0);
  return code == 0xff && finite ? 0xfe : code;
}
// As bf16, which holds every value (2^-127 as a subnormal).
inline std::uint16_t e8m0_to_bfloat(std::uint32_t code) {
  return static_cast<std::uint16_t>(code == 0xff ? 0x7fff : code == 0 ? 0x0040 : code << 7);
}

}  // namespace machine
