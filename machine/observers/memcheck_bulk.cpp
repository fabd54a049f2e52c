// memcheck of bulk copies: each stretch that one touches lies in one object, or one variable.
#include "exec/machine.hpp"
#include "memory/graph_memory.hpp"
#include "observers/memcheck.hpp"

namespace machine::checks {

bool Memcheck::admit_bulk(const WarpPoint& point, const BulkCopy& copy) {
  bool good = true;
  const auto shared = [&](std::string_view verb, std::uint64_t address, std::uint64_t bytes) {
    const std::uint64_t offset = address - point.block->shared;
    const Object* at = variable_at(point.pc, offset);
    if (at && at->contains(offset, bytes)) return;
    good = false;
    const char* why = at ? copy.tensor ? "the box starts inside its variable and ends past it"
                                       : "the copy starts inside its variable and ends past it"
                         : "the address lies in no __shared__ variable";
    invalid(point, copy.lane, Space::shared, verb, static_cast<std::uint32_t>(bytes), offset,
            at ? at : nearest_variable(offset), why, kOutsideBulk);
  };
  const auto global = [&](std::string_view verb, std::uint64_t address, std::uint64_t bytes) {
    const Object* at = AddressSpace::instance().find(address);
    const bool inside = at && at->contains(address, bytes);
    if (inside && at->state == ObjectState::live) {
      if (!regions_.any()) return;
      const Regions::Stretch* around = regions_.live_around(address);
      if (around != nullptr && around->holds(address, address + bytes)) return;
      return invalid(point, copy.lane, Space::global, verb, static_cast<std::uint32_t>(bytes), address, at,
                     "the bytes lie in no registered live region of their heap", kDeadBulk);
    }
    good = false;
    const char* why = inside ? why_not_alive(*at)
                      : copy.tensor
                          ? "the tensor map's sizes and strides lead out of the object that its tensor lies in"
                      : at ? "the copy starts inside its object and ends past it"
                           : "the address lies in no object";
    invalid(point, copy.lane, Space::global, verb, static_cast<std::uint32_t>(bytes), address,
            at ? at : AddressSpace::instance().nearest(address), why, inside ? kFreedBulk : kOutsideBulk);
  };
  const std::string_view writes = copy.reduces ? "bulk reduction" : "bulk write";
  if (!copy.registers)
    copy.each_source([&](std::uint64_t address, std::uint64_t bytes) {
      copy.reads_shared() ? shared("bulk read", address, bytes)
                          : global(copy.kind == BulkKind::prefetch ? "bulk prefetch" : "bulk read", address, bytes);
    });
  if (copy.kind != BulkKind::prefetch)
    copy.each_destination([&](std::uint64_t address, std::uint64_t bytes) {
      copy.writes_shared() ? shared(writes, address, bytes) : global(writes, address, bytes);
    });
  return good;
}

}  // namespace machine::checks
