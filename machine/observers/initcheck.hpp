// initcheck: no byte is read that nothing has written, in global, shared and local memory.
//
// What counts as a read. A load of unwritten bytes is reported at the load, also when its value is discarded later: that
// is how an over-read under a mask shows. The exception is padding. A load (or cp.async) that only moves bytes, where
// the unwritten ones form a hole of less than 16 bytes, reports nothing: the hole moves along, in the register and to
// where it is stored, and is reported when something computes with it. So structs and vectors with padding may be
// copied by value any number of times. Copies by the host from device to device move holes along as well; a copy to the
// host of a range that nothing has written at all is a warning.
//
// Memory of symbols, parameters, pinned, managed and registered memory counts as written: the program that loads it, or the
// host without telling, may have written it.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "observers/bits.hpp"
#include "observers/copies.hpp"
#include "observers/extent.hpp"
#include "observers/observer.hpp"
#include "observers/pages.hpp"
#include "observers/sink.hpp"

namespace machine::checks {

class Initcheck {
 public:
  // `written`: a bit a byte for the whole arena. Bits of global memory are only read (the chunk's own writes are in its
  // pages until join); those of the blocks' shared storage are the chunk's own.
  Initcheck(const LaunchInfo& launch, Sink& sink, ArenaBits& written);

  void block_begin(const BlockInfo& block);
  // Before the pages are marked.
  void global(const WarpPoint& point, const Access& access, const Extent& extent, PageMap& pages);
  void shared(const WarpPoint& point, const Access& access, const Extent& extent);
  void local(const WarpPoint& point, const Access& access);
  void function_entered(const WarpPoint& point);  // its arrays are unwritten, whatever an earlier call left there
  // A cp.async lands: its source was read, zeros fill up the rest of its destination. `source`: of the lanes that read all.
  struct Side {
    const Access& access;
    const Extent& extent;
  };
  void landed(const WarpPoint& point, const AsyncCopy& copy, const Side& source, const Side& destination, PageMap& pages);

 private:
  void counted_lanes(const WarpPoint& point, const Access& access, const Extent& extent, PageMap& pages);
  void landed(const WarpPoint& point, const AsyncCopy& copy, unsigned lane, PageMap& pages);
  bool counts(std::uint64_t address) const;
  std::uint64_t written_bits(std::uint64_t address, const PageMap* pages) const;
  bool is_written(std::uint64_t address, const PageMap* pages) const { return written_bits(address, pages) >> (address & 63) & 1; }
  bool all_written(const Access& access, const Extent& extent) const;
  bool all_written(std::uint64_t address, std::uint64_t bytes, const PageMap* pages) const;
  std::uint64_t holes(std::uint64_t address, unsigned width, const PageMap* pages) const;  // bit b: byte b is unwritten
  bool small_hole(const WarpPoint& point, std::uint64_t address, unsigned width, std::uint64_t holes, const PageMap* pages) const;
  const Object* variable_at(const WarpPoint& point, std::uint64_t address) const;
  void load(const WarpPoint& point, const Access& access, const Extent& extent, const PageMap* pages);
  void store(const WarpPoint& point, const Access& access, PageMap* pages);
  void mark(std::uint64_t address, std::uint64_t bytes, bool defined, PageMap* pages);
  void unwritten(const WarpPoint& point, unsigned lane, Space space, unsigned bytes, std::uint64_t address, bool is_copy);
  const CopyAnalysis::Move* move_at(std::uint32_t pc);

  // Holes in registers that a pure copy has loaded: by block, warp and register, bytes a lane.
  struct Carried {
    std::array<std::uint64_t, 32> holes{};
  };
  static std::uint64_t carried_key(const WarpPoint& p, std::uint32_t reg) {
    return p.block->index << 26 ^ std::uint64_t{p.warp} << 21 ^ reg;
  }
  void carry(const WarpPoint& point, const Access& access, unsigned lane, std::uint64_t holes);
  std::uint64_t carried(const WarpPoint& point, const Access& access, unsigned lane);

  struct LocalBits {
    std::vector<Mask> written;  // by byte of the thread's local space: lanes that have written it
    std::uint64_t block = ~std::uint64_t{0};
  };

  const LaunchInfo& launch_;
  Sink& sink_;
  ArenaBits& written_;
  Object dynamic_;
  bool any_undefined_ = false;
  std::unique_ptr<CopyAnalysis> copies_;
  std::unordered_map<std::uint64_t, Carried> carried_;
  static std::uint64_t local_key(const WarpPoint& p) { return std::uint64_t{p.block->slot} << 6 | p.warp; }
  std::unordered_map<std::uint64_t, LocalBits> local_;  // by slot and warp
};

}  // namespace machine::checks
