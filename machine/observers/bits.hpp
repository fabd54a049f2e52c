// One bit for each byte of the device's address space, reserved at once and backed only where it is touched.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

#include "memory/address_space.hpp"

namespace machine::checks {

inline constexpr unsigned kPadding = 16;  // a hole of this many unwritten bytes is no padding any more

// Calls f(word, mask) for the 64-bit words that hold bits [first, first + count).
template <class F>
inline void for_each_word(std::uint64_t first, std::uint64_t count, F&& f) {
  if (count == 0) return;
  const std::uint64_t last = first + count - 1;
  const std::uint64_t head = ~std::uint64_t{0} << (first & 63);
  const std::uint64_t tail = ~std::uint64_t{0} >> (63 - (last & 63));
  std::uint64_t word = first >> 6;
  const std::uint64_t end = last >> 6;
  if (word == end) return void(f(word, head & tail));
  f(word, head);
  for (++word; word < end; ++word) f(word, ~std::uint64_t{0});
  f(end, tail);
}

// Operations on any array of bits, 64 to a word.
inline bool all_set(const std::uint64_t* words, std::uint64_t first, std::uint64_t count) {
  std::uint64_t missing = 0;
  for_each_word(first, count, [&](std::uint64_t w, std::uint64_t mask) { missing |= ~words[w] & mask; });
  return missing == 0;
}
inline void set_bits(std::uint64_t* words, std::uint64_t first, std::uint64_t count) {
  for_each_word(first, count, [&](std::uint64_t w, std::uint64_t mask) { words[w] |= mask; });
}
inline void clear_bits(std::uint64_t* words, std::uint64_t first, std::uint64_t count) {
  for_each_word(first, count, [&](std::uint64_t w, std::uint64_t mask) { words[w] &= ~mask; });
}
inline bool test_bit(const std::uint64_t* words, std::uint64_t bit) { return words[bit >> 6] >> (bit & 63) & 1; }

class ArenaBits {
 public:
  ArenaBits() : words_(reinterpret_cast<std::uint64_t*>(reserve(kArenaBytes / 8))) {}
  ArenaBits(const ArenaBits&) = delete;
  ArenaBits& operator=(const ArenaBits&) = delete;

  static bool covers(std::uint64_t address) { return in_arena(address); }
  bool all(std::uint64_t address, std::uint64_t bytes) const { return all_set(words_, address - kArenaBase, bytes); }
  bool test(std::uint64_t address) const { return test_bit(words_, address - kArenaBase); }
  std::uint64_t word(std::uint64_t address) const {
    return words_[(address - kArenaBase) >> 6];
  }  // the 64 bytes around it
  void set(std::uint64_t address, std::uint64_t bytes) { set_bits(words_, address - kArenaBase, bytes); }
  void clear(std::uint64_t address, std::uint64_t bytes) {
    const std::uint64_t first = address - kArenaBase;
    constexpr std::uint64_t page = 4096 * 8;  // bits of a page
    if (bytes < 4 * page) return clear_bits(words_, first, bytes);
    const std::uint64_t from = (first + page - 1) / page * page, to = (first + bytes) / page * page;
    clear_bits(words_, first, from - first);
    discard(reinterpret_cast<std::byte*>(words_) + from / 8, (to - from) / 8);
    clear_bits(words_, to, first + bytes - to);
  }
  std::uint64_t* words() { return words_; }
  const std::uint64_t* words() const { return words_; }

 private:
  std::uint64_t* words_;
};

}  // namespace machine::checks
