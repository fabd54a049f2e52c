// Which bytes of a page of global memory were read, written and changed by atomics: one bit a byte and kind.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "observers/bits.hpp"

namespace machine::checks {

inline constexpr unsigned kPageShift = 12;
inline constexpr std::uint64_t kPageBytes = 1 << kPageShift;

enum class Touch : std::uint8_t {
  read = 0,
  write = 1,
  strong_read = 2,   // volatile, relaxed, acquire loads
  strong_write = 3,  // volatile, relaxed, release stores
  atomic = 4,
  async_read = 5,    // source of a cp.async, until it is waited for
};
inline bool writes(Touch t) { return t == Touch::write || t == Touch::strong_write || t == Touch::atomic; }
inline bool strong(Touch t) { return t == Touch::strong_read || t == Touch::strong_write || t == Touch::atomic; }

struct Marks {
  static constexpr unsigned kWords = kPageBytes / 64;
  using Words = std::array<std::uint64_t, kWords>;
  enum Kind : unsigned { kRead, kWritten, kAtomic };

  std::uint8_t kinds = 0;  // bit by Kind: whether any bit is set there
  Words read{}, written{}, atomic{};

  static Kind kind_of(Touch t) { return t == Touch::atomic ? kAtomic : writes(t) ? kWritten : kRead; }

  Words& of(Kind kind) { return kind == kRead ? read : kind == kWritten ? written : atomic; }
  std::uint64_t changed(unsigned w) const { return written[w] | atomic[w]; }
  bool changes() const { return (kinds & ~(1u << kRead)) != 0; }

  void set(Kind kind, std::uint64_t first, std::uint64_t count) {
    kinds |= static_cast<std::uint8_t>(1u << kind);
    set_bits(of(kind).data(), first, count);
  }
  // Whether an access that reads, or writes, bytes marked here conflicts with what marked them.
  bool conflicts(bool writing, std::uint64_t first, std::uint64_t count) const {
    if (writing ? kinds == 0 : !changes()) return false;
    std::uint64_t met = 0;
    for_each_word(first, count, [&](std::uint64_t w, std::uint64_t mask) { met |= (changed(w) | (writing ? read[w] : 0)) & mask; });
    return met != 0;
  }
  // Bytes of word w that both touched, at least one of them writing.
  std::uint64_t meets(const Marks& o, unsigned w) const {
    return (changed(w) & (o.read[w] | o.changed(w))) | (read[w] & o.changed(w));
  }
  bool meets(const Marks& o) const {
    if (!changes() && !o.changes()) return false;
    std::uint64_t met = 0;
    for (unsigned w = 0; w < kWords; ++w) met |= meets(o, w);
    return met != 0;
  }
  void add(const Marks& o) {
    each_kind(o.kinds, [&](Kind k) {
      const Words& from = const_cast<Marks&>(o).of(k);
      Words& to = of(k);
      for (unsigned w = 0; w < kWords; ++w) to[w] |= from[w];
    });
    kinds |= o.kinds;
  }
  void clear() {
    each_kind(kinds, [&](Kind k) { of(k).fill(0); });
    kinds = 0;
  }

 private:
  template <class F>
  static void each_kind(unsigned kinds, F&& f) {
    for (; kinds != 0; kinds &= kinds - 1) f(static_cast<Kind>(std::countr_zero(kinds)));
  }
};

}  // namespace machine::checks
