// The object that an instruction touched last: nearly always the one that it touches next.
#pragma once

#include <array>
#include <cstdint>

#include "memory/address_space.hpp"

namespace machine::checks {

class ObjectCache {
 public:
  // The object that holds `address`, live or freed; nullptr in no-man's-land.
  const Object* at(std::uint32_t pc, std::uint64_t address) {
    const Object*& recent = recent_[pc % recent_.size()];
    if (recent && recent->contains(address)) return recent;
    return recent = AddressSpace::instance().find(address);
  }

 private:
  std::array<const Object*, 64> recent_{};
};

}  // namespace machine::checks
