// Copies as accesses: the parts of a cp.async whose lanes read less than they write, and the sides of a bulk copy in
// global memory.
#pragma once

#include <algorithm>
#include <bit>

#include "events/observer.hpp"
#include "observers/extent.hpp"
#include "observers/lines.hpp"

namespace machine::checks {

// The same access by some of its lanes; `room` holds it where they are not all.
inline const Access& of_lanes(const Access& a, Mask lanes, Access& room) {
  return lanes == a.lanes ? a : room = narrowed(a, lanes);
}

// Calls f(access of one lane) for the lanes that read less, but something.
template <class F>
void each_short_source(const AsyncCopy& copy, Mask lanes, F&& f) {
  for (Mask rest = lanes & ~copy.whole; rest != 0; rest &= rest - 1) {
    const unsigned lane = static_cast<unsigned>(std::countr_zero(rest));
    if (copy.source_bytes[lane] == 0) continue;
    Access part = copy.source;
    part.lanes = part.breaks = Mask{1} << lane;
    part.shape = Shape::scattered;
    part.width = copy.source_bytes[lane];
    f(part);
  }
}

// Calls f(address, bytes, touch) for the stretches of global memory that a bulk copy reads or writes.
template <class F>
void each_global_side(const BulkCopy& copy, F&& f) {
  if (!copy.reads_shared() && !copy.registers)
    copy.each_source([&](std::uint64_t address, std::uint64_t bytes) { f(address, bytes, Touch::async_read); });
  if (!copy.writes_shared())
    copy.each_destination([&](std::uint64_t address, std::uint64_t bytes) {
      f(address, bytes, copy.reduces ? Touch::atomic : Touch::async_write);
    });
}

// Calls f(access, touch) for accesses of one lane that make up those stretches, none of them over the end of a line.
template <class F>
void each_global_part(const BulkCopy& copy, F&& f) {
  std::uint64_t addresses[kWarp] = {};
  Access a;
  a.lanes = a.breaks = Mask{1} << copy.lane;
  a.address = addresses;
  each_global_side(copy, [&](std::uint64_t address, std::uint64_t bytes, Touch touch) {
    a.kind = touch == Touch::async_read ? AccessKind::load : copy.reduces ? AccessKind::reduction : AccessKind::store;
    for (const std::uint64_t end = address + bytes; address < end;) {
      const std::uint64_t next = std::min(end, (address / kLineBytes + 1) * kLineBytes);
      addresses[copy.lane] = address;
      a.width = static_cast<std::uint32_t>(next - address);
      f(a, touch);
      address = next;
    }
  });
}

}  // namespace machine::checks
