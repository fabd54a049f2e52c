// initcheck: nothing depends on what nobody has written, in global, shared and local memory and in registers.
//
// Undefined bits are followed as in Valgrind's memcheck. Here is what memory holds: a bit a byte says whether it is
// defined; bytes that are undefined in part, and where stored undefined values come from, are kept beside. A load gives
// the bits to execution, which follows them through registers, and returns them with what it stores. An undefined
// value is reported where it decides something, with the place where it was read first; a host that reads it is
// host_side.cpp's.
//
// Memory of symbols, parameters, pinned, managed and registered memory counts as written: the program that loads it, or
// the host without notification, may have written it.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "observers/check.hpp"

namespace machine::checks {

class Initcheck : public ChunkCheck {
 public:
  static constexpr Following kFollowing = Following::memory;
  explicit Initcheck(const ChunkContext& context);

  void block_begin(const BlockInfo& block);
  void global(const WarpPoint& point, const Access& access, const Extent& extent);
  void shared(const WarpPoint& point, const Access& access, const Extent& extent);
  void local(const WarpPoint& point, const Access& access, const Extent& extent);
  void stack_grown(const WarpPoint& point, const GrownStack::Array& grown);
  void function_entered(const WarpPoint& point);  // its arrays are unwritten, whatever an earlier call left there
  // A cp.async: its source is read, zeros fill up the rest of its destination.
  void landed(const WarpPoint& point, const AsyncCopy& copy, Mask lanes, const CopySide& source,
              const CopySide& destination);
  void bulk_issue(const WarpPoint& point, const BulkCopy& copy);  // what a reduction reads is read here
  void bulk_land(const WarpPoint& point, const BulkCopy& copy, std::uint64_t phase);
  // At `point` an undefined value decides something.
  void used(const WarpPoint& point, UndefinedUse use, Mask lanes, const Origin& origin);
  // What the launch leaves behind in global memory.
  void hand_over(Kept& kept) const;

 private:
  void forget_local(const WarpPoint& point, Mask lanes, std::uint64_t begin, std::uint64_t end);
  static constexpr std::uint8_t kNoThread = 0xff;  // as the warp of an origin: another block's
  struct Stored {
    Origin origin;
    std::uint64_t block;
  };
  void counted_lanes(const WarpPoint& point, const Access& access, const Extent& extent);
  void lane_landed(const WarpPoint& point, const AsyncCopy& copy, unsigned lane);
  bool counts(std::uint64_t address) const;
  std::uint64_t written_bits(std::uint64_t address, const PageMap* pages) const;
  bool all_written(const Access& access, const Extent& extent) const;
  bool all_written(std::uint64_t address, std::uint64_t bytes, const PageMap* pages) const;
  bool clean(const Access& access, const Extent& extent, const PageMap* pages) const;
  // Undefined bits of a byte of the arena.
  std::uint8_t undefined_byte(std::uint64_t address, const PageMap* pages) const;
  Origin origin_at(const WarpPoint& point, unsigned lane, std::uint64_t address) const;
  Origin origin_of(const WarpPoint& point, const Stored& stored) const;
  // What lane `lane` reads there, into `to`. False: all of it is defined.
  bool read(const WarpPoint& point, unsigned lane, std::uint64_t address, unsigned bytes, const PageMap* pages,
            Undefined& to) const;
  void load(const WarpPoint& point, const Access& access, const Extent& extent, const PageMap* pages);
  void store(const WarpPoint& point, const Access& access, PageMap* pages);
  void atomic(const WarpPoint& point, const Access& access, const Extent& extent, PageMap* pages);
  void mark(std::uint64_t address, std::uint64_t bytes, bool defined, PageMap* pages);
  void write(const WarpPoint& point, std::uint64_t address, const std::uint8_t* bits, unsigned bytes,
             const Origin& origin, PageMap* pages);
  report::Finding describe(const Origin& origin, std::uint64_t block) const;
  const Object* variable_at(std::uint64_t offset) const;

  struct LocalBits {
    std::vector<Mask> written;  // by byte of the thread's local space: lanes that have written it
    std::uint64_t block = ~std::uint64_t{0};
    std::unordered_map<std::uint64_t, std::uint8_t> partial;  // by offset and lane, as in Kept
    std::unordered_map<std::uint64_t, Origin> stored;         // by offset / 4 and lane
  };
  void store_local(LocalBits& bits, const Access& access);
  void load_local(const WarpPoint& point, const LocalBits& bits, const Access& access);

  const LaunchInfo& launch_;
  Sink& sink_;
  // A bit a byte for the whole arena. Those of global memory are only read, as is `kept_`: the chunk's own writes are
  // in its pages until join. Those of the blocks' shared storage are the chunk's own.
  ArenaBits& written_;
  const Kept& kept_;
  PageMap& pages_;
  Object dynamic_;
  static std::uint64_t local_key(const WarpPoint& p) { return std::uint64_t{p.block->slot} << 6 | p.warp; }
  bool any_undefined_ = false;  // some page has bytes whose last write stored undefined bits
  std::unordered_map<std::uint64_t, std::uint8_t> partial_;
  std::unordered_map<std::uint64_t, Stored> stored_;
  std::unordered_map<std::uint64_t, LocalBits> local_;           // by slot and warp
  std::unordered_map<std::uint32_t, std::string> local_places_;  // by load: the first unwritten byte that it met
};

}  // namespace machine::checks
