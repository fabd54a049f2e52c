#include "observers/strong.hpp"

#include <bit>

namespace machine::checks {

void StrongLocations::observe(BlockOrder& order, unsigned warp, Mask lanes, const Location& from, bool acquire,
                              Width width) {
  bool own = false;  // all that was released here, the own block released
  for (const auto& [block, seen] : from.narrow) {
    if (!seen) continue;
    order.observe(warp, lanes, seen, acquire, block == order.block() ? Source::own_block : Source::out_of_reach);
    own |= block == order.block() && seen == from.wide;
  }
  if (from.wide && !own)
    order.observe(warp, lanes, from.wide, acquire, width == kBlockWide ? Source::out_of_reach : Source::other_block);
}

void StrongLocations::access(BlockOrder& order, const WarpPoint& point, const Access& a) {
  const bool reads = a.kind == AccessKind::load || a.kind == AccessKind::atomic;
  const bool modifies = a.kind == AccessKind::atomic || a.kind == AccessKind::reduction;
  const bool stores = a.kind == AccessKind::store;
  const bool acquire = a.order == Order::acquire || a.order == Order::acq_rel;
  const bool release = a.order == Order::release || a.order == Order::acq_rel;
  // Volatile accesses are relaxed at system scope; an atomic without a scope is of device scope.
  const Width width = a.scope == Scope::cta || a.scope == Scope::cluster ? kBlockWide : kDeviceWide;
  const bool publishes = (modifies || stores) && (release || order.has_fenced(point.warp, a.lanes));
  if (!publishes && locations_.empty()) return;

  if (!publishes && reads) {
    // Lanes that look at one location learn the same.
    for (Mask rest = a.lanes; rest != 0;) {
      const std::uint64_t address = a.address[std::countr_zero(rest)];
      Mask same = 0;
      for (Mask l = rest; l != 0; l &= l - 1) same |= a.address[std::countr_zero(l)] == address ? l & -l : 0;
      rest &= ~same;
      if (const auto at = locations_.find(address); at != locations_.end())
        observe(order, point.warp, same, at->second, acquire, width);
    }
    return;
  }
  for (Mask rest = a.lanes; rest != 0; rest &= rest - 1) {
    const unsigned lane = static_cast<unsigned>(std::countr_zero(rest));
    const auto at = locations_.find(a.address[lane]);
    if (reads && at != locations_.end()) observe(order, point.warp, Mask{1} << lane, at->second, acquire, width);
    if (stores && !publishes && at != locations_.end()) locations_.erase(at);
    if (!publishes) continue;
    const BlocksPtr wide = width == kDeviceWide ? order.publication(point.warp, lane, release, kDeviceWide) : nullptr;
    const BlocksPtr narrow = release && wide ? wide : order.publication(point.warp, lane, release, kBlockWide);
    Location& location = locations_[a.address[lane]];
    if (stores) location = {};
    location.wide = unite(location.wide, wide);
    bool known = false;
    for (auto& [block, seen] : location.narrow)
      if (block == order.block()) seen = unite(seen, narrow), known = true;
    if (!known && narrow) location.narrow.emplace_back(order.block(), narrow);
  }
  if (publishes) order.step(point.warp);
}

void StrongLocations::forget(std::uint64_t base, std::uint64_t bytes) {
  if (locations_.empty()) return;
  std::erase_if(locations_, [&](const auto& entry) { return entry.first - base < bytes; });
}

}  // namespace machine::checks
