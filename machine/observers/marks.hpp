// Which bytes of a page of global memory were read, written and changed by atomics.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <memory>

#include "events/access.hpp"
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
  async_read = 5,   // source of a cp.async or a bulk copy, until it is waited for
  async_write = 6,  // destination of a bulk copy, likewise
};
inline Touch touch_of(const Access& a) {
  if (a.kind == AccessKind::atomic || a.kind == AccessKind::reduction) return Touch::atomic;
  const bool is_strong = a.order != Order::weak;
  if (a.kind == AccessKind::store) return is_strong ? Touch::strong_write : Touch::write;
  return is_strong ? Touch::strong_read : Touch::read;
}
inline bool writes(Touch t) {
  return t == Touch::write || t == Touch::strong_write || t == Touch::atomic || t == Touch::async_write;
}
inline bool async(Touch t) { return t == Touch::async_read || t == Touch::async_write; }
inline bool strong(Touch t) { return t == Touch::strong_read || t == Touch::strong_write || t == Touch::atomic; }

// What was done to a byte, as far as marks show.
enum class Deed : std::uint8_t { read, written, atomic };
inline constexpr unsigned kDeeds = 3;
inline Deed deed_of(Touch t) { return t == Touch::atomic ? Deed::atomic : writes(t) ? Deed::written : Deed::read; }

inline constexpr unsigned kPageWords = kPageBytes / 64;
using PageBits = std::array<std::uint64_t, kPageWords>;  // one bit a byte

// Bits of a page that change with every access: quick to set and to ask.
class Marks {
 public:
  bool any(Deed d) const { return (deeds_ >> static_cast<unsigned>(d) & 1) != 0; }
  const PageBits& bits(Deed d) const { return bits_[static_cast<unsigned>(d)]; }
  bool any_changed() const { return deeds_ > 1; }
  std::uint64_t changed(unsigned w) const { return bits(Deed::written)[w] | bits(Deed::atomic)[w]; }

  void set(Deed d, std::uint64_t first, std::uint64_t count) {
    note(d);
    set_noted(d, first, count);
  }
  // The same in two steps, for several stretches.
  void note(Deed d) { deeds_ |= static_cast<std::uint8_t>(1u << static_cast<unsigned>(d)); }
  void set_noted(Deed d, std::uint64_t first, std::uint64_t count) {
    set_bits(bits_[static_cast<unsigned>(d)].data(), first, count);
  }
  // Whether an access that reads, or writes, these bytes conflicts with what is marked.
  bool conflicts(bool writing, std::uint64_t first, std::uint64_t count) const {
    if (writing ? deeds_ == 0 : !any_changed()) return false;
    std::uint64_t met = 0;
    for_each_word(first, count, [&](std::uint64_t w, std::uint64_t mask) {
      met |= (changed(w) | (writing ? bits(Deed::read)[w] : 0)) & mask;
    });
    return met != 0;
  }
  void clear() {
    for (unsigned d = 0; d < kDeeds; ++d)
      if ((deeds_ >> d & 1) != 0) bits_[d].fill(0);
    deeds_ = 0;
  }

 private:
  std::uint8_t deeds_ = 0;
  std::array<PageBits, kDeeds> bits_{};
};

// The same for keeping. Most pages are touched in one stretch, and then its bounds say all; the others get bits, which
// stay with the page when it is used again.
class KeptMarks {
 public:
  bool any(Deed d) const { return (deeds_ >> static_cast<unsigned>(d) & 1) != 0; }
  bool changed() const { return deeds_ > 1; }
  std::uint64_t word(Deed d, unsigned w) const {
    const unsigned at = static_cast<unsigned>(d);
    if (!any(d)) return 0;
    return spread(d) ? (*bits_[at])[w] : bounds_[at].word(w);
  }
  std::uint64_t changed(unsigned w) const { return word(Deed::written, w) | word(Deed::atomic, w); }

  void set(Deed d, std::uint64_t first, std::uint64_t count) {
    const unsigned at = static_cast<unsigned>(d);
    const Stretch more{static_cast<std::uint16_t>(first), static_cast<std::uint16_t>(first + count)};
    if (!any(d)) {
      deeds_ |= static_cast<std::uint8_t>(1u << at);
      bounds_[at] = more;
      return;
    }
    if (!spread(d) && (more.first > bounds_[at].end || bounds_[at].first > more.end)) spread_out(d);
    bounds_[at] = bounds_[at].around(more);
    if (spread(d)) set_bits(bits_[at]->data(), first, count);
  }
  void add(const Marks& o) {
    for (unsigned at = 0; at < kDeeds; ++at)
      if (const Deed d = static_cast<Deed>(at); o.any(d)) add(d, o.bits(d));
  }
  void add(const KeptMarks& o) {
    for (unsigned at = 0; at < kDeeds; ++at) {
      const Deed d = static_cast<Deed>(at);
      if (!o.any(d)) continue;
      if (o.spread(d)) add(d, *o.bits_[at]);
      else set(d, o.bounds_[at].first, o.bounds_[at].count());
    }
  }
  // Whether an access that reads, or writes, these bytes conflicts with what is marked.
  bool conflicts(bool writing, std::uint64_t first, std::uint64_t count) const {
    if (writing ? deeds_ == 0 : !changed()) return false;
    std::uint64_t met = 0;
    for_each_word(first, count, [&](std::uint64_t w, std::uint64_t mask) {
      const auto at = static_cast<unsigned>(w);
      met |= (changed(at) | (writing ? word(Deed::read, at) : 0)) & mask;
    });
    return met != 0;
  }
  // Bytes of word w that both touched, at least one of them writing.
  std::uint64_t meets(const KeptMarks& o, unsigned w) const {
    return (changed(w) & (o.word(Deed::read, w) | o.changed(w))) | (word(Deed::read, w) & o.changed(w));
  }
  bool meets(const KeptMarks& o) const {
    for (unsigned a = 0; a < kDeeds; ++a)
      for (unsigned b = a == 0 ? 1 : 0; b < kDeeds; ++b)
        if (overlap(static_cast<Deed>(a), o, static_cast<Deed>(b))) return true;
    return false;
  }
  void clear() { deeds_ = spread_ = 0; }

 private:
  struct Stretch {
    std::uint16_t first = 0, end = 0;
    std::uint64_t count() const { return std::uint64_t{end} - first; }
    Stretch around(const Stretch& o) const { return {std::min(first, o.first), std::max(end, o.end)}; }
    std::uint64_t word(unsigned w) const {
      const int low = std::max(first - static_cast<int>(w) * 64, 0),
                high = std::min(end - static_cast<int>(w) * 64, 64);
      return low >= high ? 0 : ~std::uint64_t{0} << low & ~std::uint64_t{0} >> (64 - high);
    }
  };

  bool spread(Deed d) const { return (spread_ >> static_cast<unsigned>(d) & 1) != 0; }
  PageBits& room(unsigned at) {
    if (!bits_[at]) bits_[at] = std::make_unique<PageBits>();
    return *bits_[at];
  }
  // From bounds to bits.
  void spread_out(Deed d) {
    const unsigned at = static_cast<unsigned>(d);
    spread_ |= static_cast<std::uint8_t>(1u << at);
    PageBits& bits = room(at);
    bits.fill(0);
    set_bits(bits.data(), bounds_[at].first, bounds_[at].count());
  }
  bool overlap(Deed d, const KeptMarks& o, Deed e) const {
    if (!any(d) || !o.any(e)) return false;
    const Stretch &a = bounds_[static_cast<unsigned>(d)], &b = o.bounds_[static_cast<unsigned>(e)];
    if (a.first >= b.end || b.first >= a.end) return false;
    std::uint64_t met = spread(d) || o.spread(e) ? 0 : 1;
    for (unsigned w = std::max(a.first, b.first) / 64; met == 0 && w * 64 < std::min(a.end, b.end); ++w)
      met = word(d, w) & o.word(e, w);
    return met != 0;
  }
  void add(Deed d, const PageBits& bits) {
    unsigned first = 0, last = kPageWords - 1, count = 0;
    while (bits[first] == 0) ++first;
    while (bits[last] == 0) --last;
    for (std::uint64_t word : bits) count += static_cast<unsigned>(std::popcount(word));
    const Stretch all{static_cast<std::uint16_t>(first * 64 + static_cast<unsigned>(std::countr_zero(bits[first]))),
                      static_cast<std::uint16_t>(last * 64 + 64 - static_cast<unsigned>(std::countl_zero(bits[last])))};
    if (count == all.count()) return set(d, all.first, count);
    const unsigned at = static_cast<unsigned>(d);
    if (!any(d)) {
      deeds_ |= static_cast<std::uint8_t>(1u << at);
      spread_ |= static_cast<std::uint8_t>(1u << at);
      bounds_[at] = all;
      room(at) = bits;
      return;
    }
    if (!spread(d)) spread_out(d);
    bounds_[at] = bounds_[at].around(all);
    for (unsigned w = 0; w < kPageWords; ++w) (*bits_[at])[w] |= bits[w];
  }

  std::uint8_t deeds_ = 0;   // bit by Deed: whether any byte is marked
  std::uint8_t spread_ = 0;  // bit by Deed: not all of the bounds, `bits_` say which bytes; otherwise they say nothing
  std::array<Stretch, kDeeds> bounds_{};
  std::array<std::unique_ptr<PageBits>, kDeeds> bits_;
};

}  // namespace machine::checks
