// memcheck: every byte that is touched lies inside the object it belongs to, which is alive; and inside a heap with
// registered live regions, only bytes of a region are touched. Alignment, and addresses that the machine itself must
// not touch, are told as faults.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "events/observer.hpp"
#include "memory/address_space.hpp"
#include "observers/extent.hpp"
#include "observers/sink.hpp"

namespace machine::checks {

// Registered live regions, and the heaps that they live in.
class Regions {
 public:
  void add_heap(std::uint64_t base, std::uint64_t bytes);
  void remove_heap(std::uint64_t base);
  // Heaps and regions that begin in memory which has been freed; few programs take them back themselves.
  void remove_all(std::uint64_t base, std::uint64_t bytes);
  void add(std::uint64_t base, std::uint64_t bytes);
  void remove(std::uint64_t base);

  bool any() const { return !heaps_.empty(); }
  // The stretch around `address` that may be touched: its region, or all between two heaps. Empty for a dead byte.
  struct Stretch {
    std::uint64_t low = 0, high = 0;
    bool holds(std::uint64_t from, std::uint64_t to) const { return from >= low && to <= high; }
  };
  // What follows may be asked only after settle(), which is called before a launch.
  void settle();
  // nullptr for a dead byte. `near`: a stretch that was found before, or nullptr; rows are mostly touched in turn.
  const Stretch* live_around(std::uint64_t address, const Stretch* near = nullptr) const;
  const std::map<std::uint64_t, std::uint64_t>& regions() const { return regions_; }

 private:
  std::map<std::uint64_t, std::uint64_t> heaps_, regions_;  // base to bytes
  std::vector<Stretch> live_;                               // by address: what lies outside every heap, and the regions
  bool settled_ = false;
};

// The array at `offset` of a lane's local space, in the frame of the function at hand or of those that called it; its
// base is an offset of the thread as well.
std::optional<Object> local_array_at(const LocalFrame* frame, unsigned lane, std::uint64_t offset);

class Memcheck {
 public:
  Memcheck(const LaunchInfo& launch, Sink& sink, const Regions& regions);

  // The lanes that may go on.
  Mask global(const WarpPoint& point, const Access& access, const Extent& extent);
  Mask shared(const WarpPoint& point, const Access& access, const Extent& extent);
  Mask local(const WarpPoint& point, const Access& access, const Extent& extent);

  // Of a bulk copy; false: it must not be done.
  bool bulk(const WarpPoint& point, const BulkCopy& copy);

  // An address that execution refused.
  void fault(const WarpPoint& point, const FaultEvent& event);

 private:
  enum Rule : std::uint32_t {
    kOutside = 100,
    kFreed = 101,
    kMisaligned = 102,
    kDead = 103,
    kOutsideBulk = 104,
    kFreedBulk = 105,
    kDeadBulk = 106
  };
  const Object* variable_at(std::uint32_t pc, std::uint64_t offset);
  const Object* nearest_variable(std::uint64_t offset) const;
  // The stretch that was last found near an address.
  const Regions::Stretch*& recent_live(std::uint64_t address) {
    return recent_live_[(address >> kGranuleShift) % recent_live_.size()];
  }
  void dead_lanes(const WarpPoint& point, const Access& access, Mask lanes);
  void invalid(const WarpPoint& point, unsigned lane, Space space, std::string_view verb, std::uint32_t bytes,
               std::uint64_t address, const Object* object, std::string_view why, std::uint32_t rule);

  const LaunchInfo& launch_;
  Sink& sink_;
  const Regions& regions_;
  std::array<const Object*, 64> recent_shared_{};          // by instruction
  std::array<const Regions::Stretch*, 64> recent_live_{};  // by granule
  Object dynamic_;
};

}  // namespace machine::checks
