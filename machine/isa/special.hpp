// The approximate functions of the special unit, closer to the true value than the documented error, and vectorisable.
// The host must be in round-to-nearest mode; whether subnormals are flushed is its mode's affair.
#pragma once

#include "exec/real.hpp"

namespace machine::special {

// 2^x: Taylor series of 2^r on [-1/2, 1/2] (remainder below 6e-9), scaled in two steps so that subnormals round once.
inline float ex2(float x) {
  const float clamped = x < -152.0f ? -152.0f : x > 129.0f ? 129.0f : x;
  const float whole = (clamped + 0x1.8p23f) - 0x1.8p23f;
  const float r = clamped - whole;
  float p = 0x1.ffcbfcp-17f;  // ln2^7 / 7!
  p = p * r + 0x1.430912p-13f;
  p = p * r + 0x1.5d87fep-10f;
  p = p * r + 0x1.3b2ab6p-7f;
  p = p * r + 0x1.c6b08ep-5f;
  p = p * r + 0x1.ebfbe0p-3f;
  p = p * r + 0x1.62e430p-1f;
  p = p * r + 1.0f;
  const std::int32_t n = static_cast<std::int32_t>(whole == whole ? whole : 0.0f);
  const std::int32_t first = n >> 1, second = n - first;
  const float scaled = p * float_of(static_cast<std::uint32_t>(first + 127) << 23) *
                       float_of(static_cast<std::uint32_t>(second + 127) << 23);
  return x != x ? float_of(kNan32) : scaled;
}

// log2 x = e + 2/ln2 * atanh((m - 1) / (m + 1)) with m in [sqrt 1/2, sqrt 2).
inline float lg2(float x) {
  const std::uint32_t given = bits_of(x);
  const bool tiny = given < 0x00800000u;
  // A subnormal is scaled up by integer means, since the host may flush it (then it never gets here nonzero).
  const float lifted = static_cast<float>(static_cast<std::int32_t>(given & 0x7fffffu));  // x * 2^149
  const std::uint32_t b = tiny ? bits_of(lifted) : given;
  const std::uint32_t moved = b - 0x3f3504f3u;
  const float e = static_cast<float>(static_cast<std::int32_t>(moved) >> 23) - (tiny ? 149.0f : 0.0f);
  const float m = float_of((moved & 0x7fffffu) + 0x3f3504f3u);
  const float t = (m - 1.0f) / (m + 1.0f), t2 = t * t;
  float p = 0x1.0c9a84p-2f;  // 2 / (11 ln2)
  p = p * t2 + 0x1.484b14p-2f;
  p = p * t2 + 0x1.a61762p-2f;
  p = p * t2 + 0x1.2776c6p-1f;
  p = p * t2 + 0x1.ec709ep-1f;
  p = p * t2 + 0x1.715476p+1f;
  const float r = p * t + e;
  const std::uint32_t magnitude = given & 0x7fffffffu;
  const float special = magnitude == 0 ? -__builtin_inff() : given == 0x7f800000u ? __builtin_inff() : float_of(kNan32);
  return magnitude == 0 || given >= 0x7f800000u ? special : r;
}

// tanh: odd polynomial near zero, 1 - 2 / (e^2x + 1) beyond.
inline float tanh(float x) {
  const float a = std::fabs(x), x2 = x * x;
  const float near =
      x + x * x2 * (-0x1.555556p-2f + x2 * (0x1.111112p-3f + x2 * (-0x1.ba1ba2p-5f + x2 * 0x1.664f48p-6f)));
  const float far = 1.0f - 2.0f / (ex2(a * 0x1.715476p+1f) + 1.0f);
  const float r = std::copysign(a < 0.55f ? near : far, x);
  return x != x ? float_of(kNan32) : r;
}

// sin and cos as the unit has them for arguments of any size: the product with 1 / (2 pi), cut to a float, is the angle
// in turns, of which 25 bits behind the point count; each second quadrant is gone through backwards, from its last
// step.
inline float circular(float x, int shift) {
  const std::uint32_t given = bits_of(x), sign = given & 0x80000000u;
  const double exact = static_cast<double>(float_of(given ^ sign)) * static_cast<double>(0.15915494f);
  const float nearest = static_cast<float>(exact);
  const float cut = static_cast<double>(nearest) > exact ? float_of(bits_of(nearest) - 1) : nearest;
  const double turns = static_cast<double>(flushed(cut));
  const double whole = __builtin_floor(turns);
  const double part = turns < 0x1p25 ? (turns - whole) * 0x1p25 : 0.0;
  const std::int32_t phase = static_cast<std::int32_t>(part), quadrant = (phase >> 23) + shift, rest = phase & 0x7fffff;
  const std::int32_t step = (quadrant & 1) != 0 ? 0x7fffff - rest : rest;
  const double r = step * 0x1.921fb54442d18p-23, r2 = r * r;  // below pi / 2
  const double v =
      r + r * r2 *
              (-1.0 / 6 + r2 * (1.0 / 120 +
                                r2 * (-1.0 / 5040 + r2 * (1.0 / 362880 + r2 * (-1.0 / 39916800 + r2 / 6227020800.0)))));
  const std::uint32_t turned = (static_cast<std::uint32_t>(quadrant) & 2) << 30;
  const float y = float_of(bits_of(static_cast<float>(v)) ^ turned ^ (shift == 0 ? sign : 0u));
  return (given & 0x7fffffffu) >= 0x7f800000u ? float_of(kNan32) : y;
}
inline float sin(float x) { return circular(x, 0); }
inline float cos(float x) { return circular(x, 1); }

}  // namespace machine::special
