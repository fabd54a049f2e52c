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
    for (const Object* object : known_)
      if (object && object->contains(address)) return recent = object;
    recent = AddressSpace::instance().find(address);
    if (recent) known_[next_++ % known_.size()] = recent;
    return recent;
  }

 private:
  std::array<const Object*, 64> recent_{};  // by instruction
  std::array<const Object*, 16> known_{};   // found last
  unsigned next_ = 0;
};

}  // namespace machine::checks
