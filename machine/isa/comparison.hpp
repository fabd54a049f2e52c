// The comparisons of setp and set.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string_view>

namespace machine {

enum class Cmp : std::uint8_t { eq, ne, lt, le, gt, ge, equ, neu, ltu, leu, gtu, geu, num, nan };

inline constexpr std::string_view kComparisons[] = {"eq",  "ne",  "lt",  "le",  "gt",  "ge",  "equ",
                                                    "neu", "ltu", "leu", "gtu", "geu", "num", "nan"};
inline constexpr std::string_view kUnsignedComparisons[] = {"lo", "ls", "hi", "hs"};  // of lt, le, gt, ge

// -1: the word is no comparison.
inline int comparison_of(std::string_view word) {
  if (const auto at = std::find(std::begin(kComparisons), std::end(kComparisons), word); at != std::end(kComparisons))
    return static_cast<int>(at - std::begin(kComparisons));
  if (const auto at = std::find(std::begin(kUnsignedComparisons), std::end(kUnsignedComparisons), word);
      at != std::end(kUnsignedComparisons))
    return static_cast<int>(Cmp::lt) + static_cast<int>(at - std::begin(kUnsignedComparisons));
  return -1;
}

template <class T>
constexpr bool holds(Cmp c, T a, T b) {
  switch (c) {
    case Cmp::eq: return a == b;
    case Cmp::ne: return a < b || a > b;
    case Cmp::lt: return a < b;
    case Cmp::le: return a <= b;
    case Cmp::gt: return a > b;
    case Cmp::ge: return a >= b;
    case Cmp::equ: return !(a < b || a > b);
    case Cmp::neu: return a != b;
    case Cmp::ltu: return !(a >= b);
    case Cmp::leu: return !(a > b);
    case Cmp::gtu: return !(a <= b);
    case Cmp::geu: return !(a < b);
    case Cmp::num: return a == a && b == b;
    case Cmp::nan: return a != a || b != b;
  }
  return false;
}

}  // namespace machine
