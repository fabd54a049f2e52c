// racecheck on shared memory: every byte remembers its last writer, and the last reading of every warp since.
//
// The state lies in planes, arrays over the block's shared space with one cell for 4 bytes, so that a full-warp access
// is checked and recorded by vector operations. A line of 128 bytes that is accessed in parts of a word gets planes of
// its own with one cell a byte. Lines that nobody has touched since the last block barrier need no check at all.
//
// Reads are only written down, and brought into the planes when a line that was read since the last block barrier is
// written: what was read before a barrier of the whole block lies in everybody's past. Async copies are written down
// too, until somebody touches a line that one of them wrote and that a barrier has not put into everybody's past.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "observers/access_log.hpp"
#include "observers/extent.hpp"
#include "observers/order.hpp"
#include "observers/race_report.hpp"

namespace machine::checks {

class SharedRaces {
 public:
  // A new block in this slot. Old stamps lie below every floor of the new block, so nothing is cleared.
  void begin(const BlockInfo& block, const SharedLayout& layout, std::uint32_t dynamic_bytes);

  void access(const BlockOrder& order, RaceReport& report, const WarpPoint& point, const Access& access,
              const Extent& extent);
  // The destination of a cp.async, from its issue on.
  void async_write(const BlockOrder& order, RaceReport& report, const WarpPoint& point, const Access& destination,
                   const Extent& extent);

  // What accesses through the generic proxy last did to a cell that a bulk copy touches.
  struct Earlier {
    std::uint64_t address = 0;
    unsigned actor = 0;
    Mask lanes = 0;
    Stamp stamp = 0;
    std::uint32_t pc = 0;
    Touch touch = Touch::read;
  };
  // Calls f(earlier) for what a warp may not count on when a lane of it issues a bulk copy of these bytes: writes that
  // it does not come after, as a whole, or that no fence has handed to the async proxy and, for a copy that writes,
  // reads that it does not come after.
  template <class F>
  void each_open(const BlockOrder& order, unsigned warp, std::uint64_t address, std::uint64_t bytes, bool writes,
                 F&& f);
  const Object* object_at(std::uint64_t offset) const;

 private:
  static constexpr Stamp kAsyncWritten = ~Stamp{0};
  // A cell's owner: lane in bits 0-4, actor in bits 5-10, how it was written above. Reads keep the flags in the
  // top of their pc.
  static constexpr std::uint32_t kWho = 0x7ff;
  static constexpr std::uint32_t kStrong = 1u << 30, kVolatile = 1u << 31, kAtomic = 1u << 29;
  static constexpr std::uint32_t kPc = (1u << 29) - 1;
  static std::uint32_t flags_of(Touch touch, bool is_volatile) {
    return (strong(touch) ? kStrong : 0) | (is_volatile ? kVolatile : 0) | (touch == Touch::atomic ? kAtomic : 0);
  }
  struct Reads {  // as long as the planes of writes, or empty
    std::vector<std::uint32_t> stamp, lanes, pc;
    std::vector<std::uint32_t> fresh;  // of `lanes`, those that read after the warp had last met in a collective
    void size(std::size_t cells) { stamp.resize(cells), lanes.resize(cells), pc.resize(cells), fresh.resize(cells); }
  };
  struct Writes {
    std::vector<std::uint32_t> owner, stamp, pc;
  };
  struct Planes : Writes {     // the last write
    Writes plain;              // the last plain write where a strong one came after it since the last barrier, or empty
    std::vector<Reads> reads;  // by warp
    void size(std::size_t cells, std::size_t warps);
  };
  struct Who {
    unsigned warp = 0, actor = 0, lane0 = 0, shift = 0;
    bool uniform = false;
    Mask lanes = 0;
    std::uint32_t pc = 0;
    Touch touch = Touch::read;
    bool is_volatile = false;
    Stamp stamp = 0;
    Stamp warp_floor = 0;  // accesses of the warp with a stamp below are known to all of it
    Stamp met = 0;         // those with a stamp below came before its last collective
    const Access* access = nullptr;
  };
  // The async copies that wrote a line since it was last settled, where they are of one warp.
  struct Copier {
    unsigned actor = 0;  // 0: there are others
    Stamp newest = 0;
  };
  // Part of a run inside one set of planes: `count` cells from `first`.
  struct Piece {
    Planes* planes = nullptr;
    std::uint32_t first = 0, count = 0;
    unsigned cell_shift = 2;
    std::uint64_t address = 0;
    unsigned offset = 0;  // bytes from the start of the run

    std::uint32_t first_line(std::uint64_t base) const { return static_cast<std::uint32_t>((address - base) / 128); }
    std::uint32_t last_line(std::uint64_t base) const {
      return static_cast<std::uint32_t>((address - base + (std::uint64_t{count} << cell_shift) - 1) / 128);
    }
    unsigned lane(const Who& who, std::uint32_t i) const {
      return who.lane0 + ((offset + (i << cell_shift)) >> who.shift);
    }
  };

  template <class F>
  void each_line(const Access& access, const Extent& extent, F&& f) const;
  template <class F>
  void each_piece(const Access& access, Who who, F&& f);
  template <class F>
  void cut(std::uint64_t address, std::uint64_t bytes, const Who& who, F&& f);

  void read(const BlockOrder& order, RaceReport& report, const Access& access, const Extent& extent, const Who& who);
  void write(const BlockOrder& order, RaceReport& report, const Access& access, const Extent& extent, const Who& who);
  bool past_uniform(const BlockOrder& order, const Access& access, const Who& who) const;
  bool write_apart(const BlockOrder& order, const Access& access, const Extent& extent, const Who& who);
  void mark_lines(const Access& access, const Extent& extent, const Who& who);
  template <unsigned cells>
  bool write_lanes(const Access& access, const Who& who);
  bool write_lanes(const Access& access, const Who& who);
  void bring_in_reads();
  void bring_in_copies(const BlockOrder& order);
  void record_read(const Piece& at, const Who& who);
  void record_write(const Piece& at, const Who& who);
  void keep_plain(const Piece& at, Stamp floor);
  Stamp newest(const std::vector<Stamp>& of_lines, const Piece& at) const;
  // race_shared_check.cpp
  void check_writes(const BlockOrder& order, RaceReport& report, const Piece& at, const Who& who);
  void check_last(const BlockOrder& order, RaceReport& report, const Piece& at, const Who& who, const Writes& last);
  void check_reads(const BlockOrder& order, RaceReport& report, const Piece& at, const Who& who);
  bool seen_since_barrier(const BlockOrder& order, const Piece& at, const Who& who, std::uint32_t cell) const;
  void judge(const BlockOrder& order, RaceReport& report, const Piece& at, const Who& who, std::uint32_t cell,
             unsigned actor, Mask by_lanes, Mask fresh, Stamp stamp, std::uint32_t pc, std::uint32_t flags);
  // The newest stamp of a line, or kAsyncWritten.
  Stamp written_at(const BlockOrder& order, std::uint64_t line) {
    const Stamp written = line_written_[line];
    return written != kAsyncWritten ? written : copy_settled(order, line);
  }
  Stamp copy_settled(const BlockOrder& order, std::uint64_t line);
  void settle(const BlockOrder& order, const Piece& at);
  Planes& fine(std::uint32_t line);

  std::uint64_t base_ = 0;
  std::uint32_t warps_ = 0;
  bool any_fine_ = false;
  Planes coarse_;
  std::vector<std::unique_ptr<Planes>> fine_;  // by line
  std::vector<Stamp> line_written_;            // newest stamp a line; ~0 where an async copy wrote
  std::vector<Copier> line_copier_;            // who wrote a line that only async copies of one warp wrote
  std::vector<Stamp> line_read_;               // the barrier floor when a line was last read
  AccessLog reads_;                            // since the barrier that set reads_floor_, not yet in the planes
  Stamp reads_floor_ = 0;
  AccessLog copies_;  // not yet in the planes, which is seen to before cells are looked at
  const SharedLayout* layout_ = nullptr;
  Object dynamic_;
};

template <class F>
void SharedRaces::cut(std::uint64_t address, std::uint64_t bytes, const Who& who, F&& f) {
  const std::uint64_t start = address - base_;
  const bool words = ((start | bytes) & 3) == 0 && who.shift >= 2;
  if (words && !any_fine_)
    return f(
        Piece{&coarse_, static_cast<std::uint32_t>(start / 4), static_cast<std::uint32_t>(bytes / 4), 2, address, 0},
        who);
  for (std::uint64_t at = start; at < start + bytes;) {
    const std::uint32_t line = static_cast<std::uint32_t>(at / 128);
    const std::uint64_t end = std::min(start + bytes, std::uint64_t{line + 1} * 128);
    const std::uint32_t count = static_cast<std::uint32_t>(end - at);
    const unsigned offset = static_cast<unsigned>(at - start);
    if (words && (line >= fine_.size() || !fine_[line])) {
      f(Piece{&coarse_, static_cast<std::uint32_t>(at / 4), count / 4, 2, base_ + at, offset}, who);
    } else {
      f(Piece{&fine(line), static_cast<std::uint32_t>(at % 128), count, 0, base_ + at, offset}, who);
    }
    at = end;
  }
}

template <class F>
void SharedRaces::each_open(const BlockOrder& order, unsigned warp, std::uint64_t address, std::uint64_t bytes,
                            bool writes, F&& f) {
  bring_in_copies(order);
  if (reads_floor_ == order.warp(warp).barrier_floor) bring_in_reads();
  Who who;
  who.shift = 31;
  const Reach& now = order.warp(warp).common.now.own;
  const Reach* proxied = now.proxied.get();
  cut(address, bytes, who, [&](const Piece& at, const Who&) {
    const Planes& planes = *at.planes;
    const auto cell = [&](std::uint32_t i) { return at.address + (std::uint64_t{i} << at.cell_shift); };
    for (std::uint32_t i = 0; i < at.count; ++i) {
      const std::uint32_t k = at.first + i, by = planes.owner[k] & kWho, actor = by >> 5;
      const Stamp stamp = planes.stamp[k];
      if (stamp < order.start() || (proxied != nullptr && stamp < proxied->upto[actor] && stamp < now.upto[actor]))
        continue;
      const std::uint32_t flags = planes.pc[k];
      const Touch touch = (flags & kAtomic) != 0   ? Touch::atomic
                          : (flags & kStrong) != 0 ? Touch::strong_write
                                                   : Touch::write;
      f(Earlier{cell(i), actor, Mask{1} << (by & 31), stamp, flags & kPc, touch});
    }
    for (unsigned u = 0; u < warps_ && writes; ++u) {
      const Reads& r = planes.reads[u];
      if (r.stamp.empty()) continue;
      for (std::uint32_t i = 0; i < at.count; ++i) {
        const std::uint32_t k = at.first + i;
        if (r.stamp[k] < order.start() || r.stamp[k] < now.upto[u]) continue;
        f(Earlier{cell(i), u, r.lanes[k], r.stamp[k], r.pc[k] & kPc,
                  (r.pc[k] & kStrong) != 0 ? Touch::strong_read : Touch::read});
      }
    }
  });
}

}  // namespace machine::checks
