// synccheck, and the other faults that execution itself meets: turns a FaultEvent into a finding.
#pragma once

#include "observers/check.hpp"

namespace machine::checks {

// Execution finds these faults; there is nothing to observe, but values of lanes outside a collective are followed.
class Synccheck : public ChunkCheck {
 public:
  static constexpr Following kFollowing = Following::registers;
  explicit Synccheck(const ChunkContext&) {}
};

// The check that a fault belongs to; "launch": whatever is checked.
std::string_view check_of(Fault fault);

// Records the fault; nothing for those that another check has already reported.
void report_fault(Sink& sink, const LaunchInfo& launch, const WarpPoint& point, const FaultEvent& event);

}  // namespace machine::checks
