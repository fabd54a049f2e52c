#include "observers/regions.hpp"

#include <algorithm>

namespace machine::checks {

void Regions::add_heap(std::uint64_t base, std::uint64_t bytes) {
  heaps_[base] = bytes;
  settled_ = false;
}

void Regions::remove_heap(std::uint64_t base) {
  if (const auto at = heaps_.find(base); at != heaps_.end()) remove_all(base, std::max<std::uint64_t>(at->second, 1));
}

void Regions::remove_all(std::uint64_t base, std::uint64_t bytes) {
  heaps_.erase(heaps_.lower_bound(base), heaps_.lower_bound(base + bytes));
  regions_.erase(regions_.lower_bound(base), regions_.lower_bound(base + bytes));
  settled_ = false;
}

void Regions::add(std::uint64_t base, std::uint64_t bytes) {
  std::uint64_t& size = regions_[base];
  size = std::max(size, bytes);
  settled_ = false;
}

void Regions::remove(std::uint64_t base) {
  regions_.erase(base);
  settled_ = false;
}

void Regions::settle() {
  if (settled_) return;
  settled_ = true;
  live_.clear();
  std::uint64_t outside = 0;  // where the last heap ended
  for (const auto& [heap, bytes] : heaps_) {
    if (heap > outside) live_.push_back({outside, heap});
    outside = heap + bytes;
    bool first = true;
    for (auto r = regions_.lower_bound(heap); r != regions_.end() && r->first < outside; ++r) {
      const Stretch region{r->first, r->first + r->second};
      // Regions that touch are one stretch.
      if (!first && region.low <= live_.back().high) live_.back().high = std::max(live_.back().high, region.high);
      else live_.push_back(region);
      first = false;
    }
  }
  live_.push_back({outside, ~std::uint64_t{0}});
}

const Regions::Stretch* Regions::live_around(std::uint64_t address, const Stretch* near) const {
  for (const Stretch* s = near; s != nullptr && s <= &live_.back() && s <= near + 1; ++s)
    if (address >= s->low && address < s->high) return s;
  const auto above = std::upper_bound(live_.begin(), live_.end(), address,
                                      [](std::uint64_t a, const Stretch& s) { return a < s.low; });
  if (above == live_.begin()) return nullptr;
  const Stretch& at = *std::prev(above);
  return address < at.high ? &at : nullptr;
}

}  // namespace machine::checks
