// Whether two racing stores leave the same value, which makes their race a warning.
#pragma once

#include <cstdint>

#include "events/access.hpp"

namespace machine::checks {

// The byte that lane `lane` of a store writes at `address`; nullptr when it does not write there, or nobody knows what.
inline const std::byte* stored_byte(const Access& a, unsigned lane, std::uint64_t address) {
  if ((a.lanes >> lane & 1) == 0 || address - a.address[lane] >= a.width) return nullptr;
  const unsigned at = static_cast<unsigned>(address - a.address[lane]), size = a.width / a.components;
  const Component& c = a.data[at / size];
  return c.base == nullptr ? nullptr : c.base + std::size_t{lane} * c.stride + at % size;
}

// Whether lane `lane` stores what the bytes at `address` held after an earlier store. Lanes of one store write in their
// order: where `same_instruction` says that the earlier one may be by lane `by_lane` of this very access, and that is a
// lower lane which writes there, its operand counts. Otherwise memory still holds what the earlier store wrote.
inline bool stores_same_value(const Access* a, unsigned lane, unsigned by_lane, bool same_instruction,
                              std::uint64_t address, unsigned bytes) {
  if (a == nullptr || a->kind != AccessKind::store) return false;
  for (unsigned b = 0; b < bytes; ++b) {
    const std::byte* mine = stored_byte(*a, lane, address + b);
    const std::byte* other = same_instruction && by_lane < lane ? stored_byte(*a, by_lane, address + b) : nullptr;
    if (other == nullptr) other = reinterpret_cast<const std::byte*>(address + b);
    if (mine == nullptr || *mine != *other) return false;
  }
  return true;
}

}  // namespace machine::checks
