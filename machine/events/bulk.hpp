// Bulk copies: what one thread hands to the copy engine, which works through the async proxy.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

namespace machine {

// Adjacent bytes that are moved together. Addresses are storage addresses; in shared memory, before the swizzle.
struct BulkPiece {
  std::uint64_t from = 0;  // 0: nothing is read, the destination is filled
  std::uint64_t to = 0;
  std::uint32_t bytes = 0;
};

// Chunks of 16 bytes of shared memory change places within rows of 16 << bits bytes.
inline std::uint64_t swizzled(std::uint64_t address, unsigned bits) {
  const std::uint64_t pattern = (std::uint64_t{1} << bits) - 1;
  return address ^ ((address >> 7 & pattern) << 4);
}

enum class BulkKind : std::uint8_t {
  load,      // global to shared memory, completes on an mbarrier
  exchange,  // within shared memory, completes on an mbarrier
  store,     // shared to global memory, completes with its bulk group
  prefetch,  // reads global memory into the cache, completes for nobody
};

// One bulk copy of one thread. It reads and writes between its issue and its completion; the machine does both as late
// as what waits for it allows.
struct BulkCopy {
  std::uint64_t id = 0;  // of those that are done: ascending in a block, from 0
  std::uint32_t pc = 0, warp = 0, lane = 0;
  BulkKind kind = BulkKind::load;
  bool reduces = false;        // the destination is updated, not overwritten
  std::uint8_t element = 0;    // bytes of a value that is reduced
  bool tensor = false;         // by a tensor map
  bool registers = false;      // st.async and red.async: what is written comes of registers, and by the generic proxy
  std::uint8_t swizzle = 0;    // bits, of the side in shared memory
  std::uint64_t mbarrier = 0;  // storage address of the one that it completes on; 0: none
  std::uint32_t group = 0;     // of its thread's bulk groups, counted from 0
  std::span<const BulkPiece> pieces;

  bool reads_shared() const { return kind == BulkKind::exchange || kind == BulkKind::store; }
  bool writes_shared() const { return kind == BulkKind::exchange || kind == BulkKind::load; }

  // Calls f(from, to, bytes) for parts whose both sides are adjacent memory, after the swizzle.
  template <class F>
  void each_chunk(F&& f) const {
    for (const BulkPiece& p : pieces) {
      if (swizzle == 0) {
        f(p.from, p.to, p.bytes);
        continue;
      }
      const std::uint64_t shared = kind == BulkKind::store ? p.from : p.to;
      for (std::uint32_t at = 0; at < p.bytes;) {
        const std::uint32_t bytes =
            std::min<std::uint32_t>(p.bytes - at, 16 - static_cast<std::uint32_t>((shared + at) & 15));
        const std::uint64_t there = swizzled(shared + at, swizzle);
        if (kind == BulkKind::store) f(there, p.to + at, bytes);
        else f(p.from == 0 ? 0 : p.from + at, there, bytes);
        at += bytes;
      }
    }
  }

  // Calls f(address, bytes) for the stretches of one side, joined where they are adjacent.
  template <class F>
  void each_source(F&& f) const {
    stretches(true, reads_shared(), f);
  }
  template <class F>
  void each_destination(F&& f) const {
    stretches(false, writes_shared(), f);
  }

 private:
  template <class F>
  void stretches(bool source, bool shared, F&& f) const {
    std::uint64_t begin = 0, end = 0;
    const auto add = [&](std::uint64_t address, std::uint64_t bytes) {
      if (address == end && end != 0) return void(end += bytes);
      if (end != begin) f(begin, end - begin);
      begin = address, end = address + bytes;
    };
    const std::uint64_t row = std::uint64_t{16} << swizzle;
    for (const BulkPiece& p : pieces) {
      const std::uint64_t address = source ? p.from : p.to;
      if (source && p.from == 0) continue;
      // A whole row keeps its bytes, in another order.
      if (!shared || swizzle == 0 || ((address | p.bytes) & (row - 1)) == 0) {
        add(address, p.bytes);
        continue;
      }
      for (std::uint32_t at = 0; at < p.bytes;) {
        const std::uint32_t bytes =
            std::min<std::uint32_t>(p.bytes - at, 16 - static_cast<std::uint32_t>((address + at) & 15));
        add(swizzled(address + at, swizzle), bytes);
        at += bytes;
      }
    }
    if (end != begin) f(begin, end - begin);
  }
};

}  // namespace machine
