// Which volatile stores of a kernel store what comes from a volatile load: v = v + 1, an update that others may come
// between, where a flag is set to a value of its own.
#pragma once

#include <cstdint>
#include <set>

#include "observers/observer.hpp"

namespace machine::checks {

class VolatileUpdates {
 public:
  // Reads the kernel's text when first asked.
  bool is_update(const Kernel& kernel, std::uint32_t pc);

 private:
  bool read_ = false;
  std::set<std::uint32_t> stores_;
};

}  // namespace machine::checks
