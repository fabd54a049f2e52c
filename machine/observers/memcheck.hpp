// memcheck: every byte that is touched lies inside the object it belongs to, which is alive; and inside a heap with
// registered live regions, only bytes of a region are touched. Alignment, and addresses that the machine itself must
// not touch, come as faults.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "memory/address_space.hpp"
#include "observers/check.hpp"

namespace machine::checks {

// The array at `offset` of a lane's local space, in the frame of the function at hand or of those that called it; its
// base is an offset of the thread as well.
std::optional<Object> local_array_at(const LocalFrame* frame, unsigned lane, std::uint64_t offset);

class Memcheck : public ChunkCheck {
 public:
  explicit Memcheck(const ChunkContext& context);

  Mask admit_global(const WarpPoint& point, const Access& access, const Extent& extent);
  Mask admit_shared(const WarpPoint& point, const Access& access, const Extent& extent);
  Mask admit_local(const WarpPoint& point, const Access& access, const Extent& extent);
  bool admit_bulk(const WarpPoint& point, const BulkCopy& copy);

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
