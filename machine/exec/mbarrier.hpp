// mbarrier objects in shared memory: their bits, and the phase count kept beside them.
#pragma once

#include <cstdint>
#include <cstring>

#include "exec/warp.hpp"

namespace machine {

// The object's 64 bits: pending arrivals 20, expected arrivals 20, phase 3, pending transaction bytes 21 (signed).
struct MbarrierBits {
  std::uint32_t pending = 0, expected = 0, phase = 0;
  std::int32_t bytes = 0;

  static constexpr std::uint32_t kCount = (1u << 20) - 1;  // most arrivals, and most transaction bytes of a phase

  static MbarrierBits unpack(std::uint64_t v) {
    MbarrierBits o;
    o.pending = static_cast<std::uint32_t>(v) & kCount;
    o.expected = static_cast<std::uint32_t>(v >> 20) & kCount;
    o.phase = static_cast<std::uint32_t>(v >> 40) & 7;
    o.bytes = static_cast<std::int32_t>(static_cast<std::int64_t>(v) >> 43);
    return o;
  }
  std::uint64_t pack() const {
    return std::uint64_t{pending & kCount} | std::uint64_t{expected & kCount} << 20 | std::uint64_t{phase & 7} << 40 |
           static_cast<std::uint64_t>(static_cast<std::int64_t>(bytes)) << 43;
  }
  static MbarrierBits at(std::uint64_t address) {
    std::uint64_t raw;
    std::memcpy(&raw, reinterpret_cast<const void*>(address), sizeof raw);
    return unpack(raw);
  }
  void put(std::uint64_t address) const {
    const std::uint64_t raw = pack();
    std::memcpy(reinterpret_cast<void*>(address), &raw, sizeof raw);
  }
};

inline MbarrierPhase* phase_of(Block& block, std::uint64_t address) {
  for (auto& m : block.mbarriers)
    if (m.address == address) return &m;
  return nullptr;
}

// Some live mbarrier has bytes in common with [address, address + bytes).
inline bool holds_mbarrier(const Block& block, std::uint64_t address, std::uint64_t bytes) {
  if (address >= block.mbarriers_end || address + bytes <= block.mbarriers_begin) return false;
  for (const auto& m : block.mbarriers)
    if (address < m.address + 8 && m.address < address + bytes) return true;
  return false;
}

// The phase completes when nothing is pending; the next one begins.
inline void complete_if_due(Block& block, std::uint64_t address, MbarrierBits& o) {
  if (o.pending != 0 || o.bytes != 0) return;
  o.phase = (o.phase + 1) & 7;
  o.pending = o.expected;
  if (auto* m = phase_of(block, address)) ++m->phase, m->expected = m->arrived = 0;
}

// More (or, below zero, fewer) transaction bytes are pending. Returns the phase that they count for. False in `fits`:
// more than an mbarrier counts.
inline std::uint64_t transact(Block& block, std::uint64_t address, std::int64_t bytes, bool& fits) {
  MbarrierBits o = MbarrierBits::at(address);
  MbarrierPhase* m = phase_of(block, address);
  const std::uint64_t phase = m != nullptr ? m->phase : 0;
  const std::int64_t pending = o.bytes + bytes;
  fits = pending <= static_cast<std::int64_t>(MbarrierBits::kCount) &&
         -pending <= static_cast<std::int64_t>(MbarrierBits::kCount);
  if (m != nullptr)
    (bytes > 0 ? m->expected += static_cast<std::uint64_t>(bytes) : m->arrived += static_cast<std::uint64_t>(-bytes));
  o.bytes = static_cast<std::int32_t>(pending);
  complete_if_due(block, address, o);
  o.put(address);
  return phase;
}

// An operation on an mbarrier that cannot be: reported, or without checks the end of the launch.
void mbarrier_invalid(Warp& w, const Inst& i, Mask lanes, const std::uint64_t* address, std::string_view detail);

// Data that `lanes` write to shared memory over an mbarrier which has not been invalidated: reported.
void check_overwritten(Warp& w, const Inst& i, Mask lanes, const std::uint64_t* address, std::uint64_t bytes);

}  // namespace machine
