// What one chunk of a launch did to global memory, page by page: which bytes it read and wrote, and who did it last.
//
// A line of 128 bytes keeps a short list of entries. An entry is one access of one warp (or, for reads, of several
// warps at once): which bytes, which lane had which byte, stamp and instruction. A run of full-warp accesses is one
// entry a line, so streaming costs one small record for 128 bytes; scattered accesses cost an entry each.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <memory>
#include <vector>

#include "observers/reach.hpp"

namespace machine::checks {

__extension__ typedef unsigned __int128 Bytes;  // bit b: byte b of a line

inline constexpr unsigned kLineShift = 7, kPageShift = 12;
inline constexpr std::uint64_t kLineBytes = 1 << kLineShift, kPageBytes = 1 << kPageShift;

inline constexpr Bytes bytes_mask(unsigned first, unsigned count) {
  return (count >= 128 ? ~Bytes{0} : (Bytes{1} << count) - 1) << first;
}
inline unsigned lowest(Bytes b) {
  const auto low = static_cast<std::uint64_t>(b);
  return static_cast<unsigned>(low != 0 ? std::countr_zero(low) : 64 + std::countr_zero(static_cast<std::uint64_t>(b >> 64)));
}

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

struct Entry {
  Bytes bytes = 0;
  std::uint32_t block = 0;
  std::uint32_t warps = 0;  // reads: every warp that did the same; else one bit
  Stamp stamp = 0;
  std::uint32_t pc = 0;
  std::uint32_t sequence = 0;  // order of the strong accesses of this launch
  Touch touch = Touch::read;
  bool is_volatile = false;
  bool block_scope = false;    // strong, but for its own block only
  bool affine = true;          // lane of byte b is lane0 + (b >> shift); else every lane in `lanes` had every byte
  std::int8_t lane0 = 0;
  std::uint8_t shift = 0;
  Mask lanes = 0;

  unsigned lane(unsigned byte) const {
    return affine ? static_cast<unsigned>(lane0 + static_cast<int>(byte >> shift)) : static_cast<unsigned>(std::countr_zero(lanes));
  }
  Mask lanes_of(unsigned byte) const { return affine ? Mask{1} << lane(byte) : lanes; }
  bool same_threads(const Entry& o) const {
    return affine == o.affine && (affine ? lane0 == o.lane0 && shift == o.shift : lanes == o.lanes);
  }
};

struct Line {
  Entry first;  // bytes == 0: none
  std::unique_ptr<std::vector<Entry>> more;
  std::uint8_t touched = 0;  // bit by Touch, of entries that are or were here
  std::uint32_t prune_at = 8;
};

// A summary for findings between operations: which instruction touched what part of a page.
struct Trace {
  std::uint32_t pc = 0, block = 0;
  std::uint16_t first = 0, last = 0;  // bytes
  std::uint8_t warp = 0;
  Touch touch = Touch::read;
};

struct Page {
  std::uint64_t number = 0;  // address >> kPageShift
  std::array<std::uint64_t, 64> read{}, written{}, atomic{};
  std::unique_ptr<std::array<std::uint64_t, 64>> undefined;  // bytes whose last write stored unwritten data
  std::array<Line, 32> lines;
  std::array<Trace, 6> traces;
  std::uint8_t trace_count = 0;

  void trace(std::uint32_t pc, std::uint32_t block, unsigned warp, Touch touch, std::uint64_t first, std::uint64_t last);
  void clear();
};

// Pages by number; pages come from a pool that the process keeps.
class PageMap {
 public:
  PageMap() = default;
  PageMap(PageMap&&) noexcept;
  PageMap& operator=(PageMap&&) noexcept;
  ~PageMap();

  Page& at(std::uint64_t address) {
    const std::uint64_t number = address >> kPageShift;
    Page*& recent = recent_[number % recent_.size()];
    if (recent && recent->number == number) return *recent;
    return *(recent = &find_or_make(number));
  }
  Page* find(std::uint64_t number) const;
  std::size_t size() const { return count_; }
  std::vector<Page*> sorted() const;

 private:
  Page& find_or_make(std::uint64_t number);
  void grow();
  std::size_t place(std::uint64_t number) const;

  std::vector<Page*> table_;
  std::size_t count_ = 0;
  std::array<Page*, 32> recent_{};
};

}  // namespace machine::checks
