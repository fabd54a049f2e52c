#include "observers/locks.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "exec/machine.hpp"
#include "memory/address_space.hpp"

namespace machine::checks {

namespace {

constexpr std::size_t kOpen = 128;         // sections of a block that are open at a time, and
constexpr std::size_t kSections = 0xffff;  // of a chunk in all: what goes beyond is not looked at
constexpr std::size_t kPairs = 64;

std::uint64_t value_at(const std::byte* place, std::uint32_t bytes) {
  std::uint64_t value = 0;
  std::memcpy(&value, place, std::min<std::size_t>(bytes, sizeof value));
  return value;
}
std::uint64_t operand_of(const Access& a, unsigned which, unsigned lane) {
  const Component& c = a.data[which];
  return c.base ? value_at(c.base + std::size_t{lane} * c.stride, a.width) : 0;
}

// Whether a lane acts for the section: it acquired the lock, or comes after that.
bool belongs(const Locks::Open& open, const BlockOrder& order, unsigned warp, unsigned lane) {
  return order.ordered(warp, lane, open.warp, open.lane, open.stamp);
}

}  // namespace

Locks::Kind Locks::kind_of(const LaunchInfo& launch, std::uint32_t pc) {
  const auto [at, fresh] = kinds_.try_emplace(pc, Kind::other);
  if (!fresh) return at->second;
  const std::string text = launch.kernel->location(pc).text;
  if (text.find(".cas.") != std::string::npos) at->second = Kind::compare;
  else if (text.find(".exch.") != std::string::npos) at->second = Kind::exchange;
  return at->second;
}

void Locks::strong_access(Held& held, BlockOrder& order, RaceReport& report, const LaunchInfo& launch,
                          const WarpPoint& point, const Access& a) {
  if (a.kind == AccessKind::load || a.width > 8) return;
  const bool atomic = a.kind != AccessKind::store;
  if (!atomic && held.empty()) return;
  const Kind kind = atomic ? kind_of(launch, point.pc) : Kind::other;
  if (kind == Kind::other && held.empty()) return;
  const bool acquire = a.order == Order::acquire || a.order == Order::acq_rel;
  const bool release = a.order == Order::release || a.order == Order::acq_rel;
  std::vector<std::uint64_t> taken;  // by lower lanes of this access
  for (Mask rest = a.lanes; rest != 0; rest &= rest - 1) {
    const unsigned lane = static_cast<unsigned>(std::countr_zero(rest));
    const std::uint64_t address = a.address[lane];
    if (std::find(taken.begin(), taken.end(), address) != taken.end()) continue;
    const std::uint64_t held_now = value_at(reinterpret_cast<const std::byte*>(address), a.width),
                        operand = operand_of(a, 0, lane);
    if (kind == Kind::compare ? operand != held_now : operand == held_now && kind == Kind::exchange)
      continue;  // changes nothing
    const auto own = std::find_if(held.begin(), held.end(), [&](const Open& o) {
      return o.lock == address && belongs(o, order, point.warp, lane);
    });
    if (own != held.end()) {
      const bool known = !atomic || kind != Kind::other;
      if (known && operand_of(a, kind == Kind::compare ? 1 : 0, lane) == own->free)
        give_back(*own, order, report, point.warp, lane, release);
      held.erase(own);
    } else if (kind != Kind::other && held.size() < kOpen && sections_.size() < kSections) {
      held.push_back({address,
                      held_now,
                      point.warp,
                      lane,
                      order.warp(point.warp).clock,
                      static_cast<std::uint16_t>(sections_.size()),
                      acquire,
                      {}});
      sections_.push_back({address, false});
      taken.push_back(address);
    }
  }
}

// What the section did is to be known to whoever acquires the lock next.
void Locks::give_back(Open& open, BlockOrder& order, RaceReport& report, unsigned warp, unsigned lane, bool release) {
  sections_[open.section].left = true;
  if (open.pairs.empty()) return;
  const BlocksPtr published = order.publication(warp, lane, release, kDeviceWide);
  const Reach* known = find(published, order.block());
  report.next_access();
  for (const Pair& pair : open.pairs) {
    if (known && known->covers(pair.now.actor, pair.now.lane, pair.now_stamp)) continue;
    if (!order.ordered(warp, lane, pair.now.actor, pair.now.lane, pair.now_stamp)) continue;
    report.race(order, pair.before, pair.now, pair.now_stamp, Relation::unordered, Conflict::not_released,
                Space::global, pair.address, AddressSpace::instance().find(pair.address));
  }
}

void Locks::fence(Held& held, const BlockOrder& order, unsigned warp, Mask lanes, Scope scope) {
  if (width_of(scope) != kDeviceWide) return;
  for (Open& open : held)
    for (Mask rest = lanes; rest != 0 && !open.fenced; rest &= rest - 1)
      open.fenced = belongs(open, order, warp, static_cast<unsigned>(std::countr_zero(rest)));
}

Locks::Part Locks::part_of(const Held& held, const BlockOrder& order, unsigned warp, Mask lanes) {
  const auto section_of = [&](unsigned lane) -> const Open* {
    const Open* found = nullptr;
    for (const Open& open : held) {
      if (open.warp == warp && open.lane == lane) return &open;
      if (!found && belongs(open, order, warp, lane)) found = &open;
    }
    return found;
  };
  const Open* first = section_of(static_cast<unsigned>(std::countr_zero(lanes)));
  Part part{0, first ? first->section : std::uint16_t{0}, first == nullptr || first->fenced};
  for (Mask rest = lanes; rest != 0; rest &= rest - 1)
    if (section_of(static_cast<unsigned>(std::countr_zero(rest))) == first) part.lanes |= rest & -rest;
  return part;
}

void Locks::note(Held& held, std::uint16_t section, const Pair& pair) {
  for (Open& open : held) {
    if (open.section != section) continue;
    for (Pair& known : open.pairs)
      if (known.now.pc == pair.now.pc && known.before.pc == pair.before.pc) return void(known = pair);
    if (open.pairs.size() < kPairs) open.pairs.push_back(pair);
  }
}

}  // namespace machine::checks
