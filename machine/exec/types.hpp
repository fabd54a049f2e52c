// PTX's scalar types, as instructions spell them.
#pragma once

#include <cstdint>
#include <string_view>

namespace machine {

enum class Type : std::uint8_t {
  none,
  pred,
  u8,
  u16,
  u32,
  u64,
  s8,
  s16,
  s32,
  s64,
  b8,
  b16,
  b32,
  b64,
  b128,
  f16,
  f16x2,
  bf16,
  bf16x2,
  f32,
  f64,
  tf32,
  u16x2,
  s16x2,
  e4m3,
  e5m2,
  e4m3x2,
  e5m2x2,
  e2m1x2,
  e2m3x2,
  e3m2x2,
  ue8m0x2,
  e4m3x4,
  e5m2x4,
  s4,
  u4,
  s2,
  u2,
  b1,
};

struct TypeName {
  std::string_view name;
  Type type;
  std::uint8_t bytes;  // in a register; 0 for a predicate
};

inline constexpr TypeName kTypes[] = {
    {"pred", Type::pred, 0},       {"u8", Type::u8, 1},         {"u16", Type::u16, 2},
    {"u32", Type::u32, 4},         {"u64", Type::u64, 8},       {"s8", Type::s8, 1},
    {"s16", Type::s16, 2},         {"s32", Type::s32, 4},       {"s64", Type::s64, 8},
    {"b8", Type::b8, 1},           {"b16", Type::b16, 2},       {"b32", Type::b32, 4},
    {"b64", Type::b64, 8},         {"b128", Type::b128, 16},    {"f16", Type::f16, 2},
    {"f16x2", Type::f16x2, 4},     {"bf16", Type::bf16, 2},     {"bf16x2", Type::bf16x2, 4},
    {"f32", Type::f32, 4},         {"f64", Type::f64, 8},       {"tf32", Type::tf32, 4},
    {"u16x2", Type::u16x2, 4},     {"s16x2", Type::s16x2, 4},   {"e4m3", Type::e4m3, 1},
    {"e5m2", Type::e5m2, 1},       {"e4m3x2", Type::e4m3x2, 2}, {"e5m2x2", Type::e5m2x2, 2},
    {"e2m1x2", Type::e2m1x2, 1},   {"e2m3x2", Type::e2m3x2, 2}, {"e3m2x2", Type::e3m2x2, 2},
    {"ue8m0x2", Type::ue8m0x2, 2}, {"s4", Type::s4, 1},         {"s2", Type::s2, 1},
    {"u2", Type::u2, 1},           {"u4", Type::u4, 1},         {"b1", Type::b1, 1},
    {"e4m3x4", Type::e4m3x4, 4},   {"e5m2x4", Type::e5m2x4, 4},
};

inline Type type_of(std::string_view name) {
  for (const auto& t : kTypes)
    if (t.name == name) return t.type;
  return Type::none;
}
inline unsigned bytes_of(Type type) {
  for (const auto& t : kTypes)
    if (t.type == type) return t.bytes;
  return 0;
}
inline std::string_view name_of(Type type) {
  for (const auto& t : kTypes)
    if (t.type == type) return t.name;
  return "?";
}
inline bool is_signed(Type t) { return t == Type::s8 || t == Type::s16 || t == Type::s32 || t == Type::s64; }
inline bool is_unsigned(Type t) { return t == Type::u8 || t == Type::u16 || t == Type::u32 || t == Type::u64; }
inline bool is_integer(Type t) { return is_signed(t) || is_unsigned(t); }
inline bool is_bits(Type t) { return t == Type::b8 || t == Type::b16 || t == Type::b32 || t == Type::b64; }
inline bool is_float(Type t) { return t == Type::f16 || t == Type::bf16 || t == Type::f32 || t == Type::f64; }

}  // namespace machine
