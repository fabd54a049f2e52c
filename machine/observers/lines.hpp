// Who touched global memory, line by line of 128 bytes: what racecheck compares an access with.
//
// A line keeps a short list of entries. An entry is one access of one warp (or, for reads, of several
// warps at once): which bytes, which lane had which byte, stamp and instruction. A run of full-warp accesses is one
// entry a line, so streaming costs one small record for 128 bytes; scattered accesses cost an entry each.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <memory>
#include <vector>

#include "observers/marks.hpp"
#include "observers/reach.hpp"

namespace machine::checks {

__extension__ typedef unsigned __int128 Bytes;  // bit b: byte b of a line

inline constexpr unsigned kLineShift = 7;
inline constexpr std::uint64_t kLineBytes = 1 << kLineShift;

inline constexpr Bytes bytes_mask(unsigned first, unsigned count) {
  return (count >= 128 ? ~Bytes{0} : (Bytes{1} << count) - 1) << first;
}
inline unsigned lowest(Bytes b) {
  const auto low = static_cast<std::uint64_t>(b);
  return static_cast<unsigned>(low != 0 ? std::countr_zero(low)
                                        : 64 + std::countr_zero(static_cast<std::uint64_t>(b >> 64)));
}

struct Entry {
  Bytes bytes = 0;
  std::uint32_t block = 0;
  std::uint32_t warps = 0;  // reads: every warp that did the same; else one bit
  Stamp stamp = 0;
  std::uint32_t pc = 0;
  std::uint32_t sequence = 0;  // order of the strong accesses of this launch
  Touch touch = Touch::read;
  bool is_volatile : 1 = false;
  bool block_scope : 1 = false;  // strong, but for its own block only
  bool affine : 1 = true;        // lane of byte b is lane0 + (b >> shift); else every lane in `lanes` had every byte
  bool read_only : 1 = false;    // ld.global.nc
  bool unfenced : 1 = false;     // inside a critical section, with no fence since the lock was acquired
  bool overwritten : 1 = false;  // a strong access has changed some of its bytes: memory no longer holds what it wrote
  std::int8_t lane0 = 0;
  std::uint8_t shift = 0;
  std::uint16_t section = 0;     // the critical section that it lies in (locks.hpp), 0: none
  std::uint8_t value_bytes = 0;  // of an atomic: what it makes one value of
  Mask lanes = 0;

  unsigned lane(unsigned byte) const {
    return affine ? static_cast<unsigned>(lane0 + static_cast<int>(byte >> shift))
                  : static_cast<unsigned>(std::countr_zero(lanes));
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
  std::uint8_t atomics = 0;  // the value_bytes of its atomics, which are powers of two
  bool quiet = true;         // nothing but strong accesses of device scope that are not volatile: they cannot race
  std::uint32_t prune_at = 8;

  void clear() {
    first.bytes = 0;
    more.reset();
    quiet = true;
    touched = atomics = 0;
    prune_at = 8;
  }
};

// What is known of one page while its blocks run. Sheets are used again: for the next block where only accesses of the
// running block are compared, else by the next launch.
struct Sheet {
  Marks marks;
  std::uint32_t used = 0;  // bit by line
  std::array<Line, kPageBytes / kLineBytes> lines;

  Line& line(std::uint64_t address) {
    const unsigned at = static_cast<unsigned>((address & (kPageBytes - 1)) >> kLineShift);
    used |= 1u << at;
    return lines[at];
  }
  void clear() {
    marks.clear();
    for (; used != 0; used &= used - 1) lines[std::countr_zero(used)].clear();
  }
};

}  // namespace machine::checks
