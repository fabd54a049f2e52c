// The checks, composed behind one observer. This is what the runtime makes and hands to the machine.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "events/observer.hpp"
#include "observers/check_options.hpp"
#include "report/report.hpp"

namespace machine::checks {

class Checks : public Observer {
 public:
  // Registered live regions (NVTX): inside a heap, only bytes of a region may be touched. Host side, never during a
  // launch.
  virtual void heap_registered(std::uint64_t base, std::uint64_t bytes) = 0;
  virtual void heap_unregistered(std::uint64_t base) = 0;
  virtual void region_registered(std::uint64_t base, std::uint64_t bytes) = 0;
  virtual void region_unregistered(std::uint64_t base) = 0;
  // A kernel that is about to begin was launched programmatically: its predecessor on the stream has yet to end.
  virtual void begins_early(std::uint64_t operation) = 0;
  // The program's name for an allocation, used in messages.
  virtual void named(std::uint64_t base, const std::string& name) = 0;
};

std::unique_ptr<Checks> make_checks(const CheckOptions& options, report::Report& report);

}  // namespace machine::checks
