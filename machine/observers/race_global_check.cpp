// What an access to global memory meets in the lines: earlier accesses that conflict with it.
//
// Of each entry that shares bytes with the access, the lanes that conflict are compared by what the thread knows of the
// other's clock (order.hpp); the weaker relations (one-sided fences, block scope, lockstep) become warnings.
#include <algorithm>

#include "memory/address_space.hpp"
#include "observers/race_global.hpp"
#include "observers/same_value.hpp"

namespace machine::checks {

namespace {

bool conflicts(Touch a, Touch b) { return writes(a) || writes(b); }

// Whether any recorded kind on this line could conflict with `t`.
bool may_conflict(const Line& line, Touch t) {
  constexpr std::uint8_t writing = 1 << unsigned(Touch::write) | 1 << unsigned(Touch::strong_write) |
                                   1 << unsigned(Touch::atomic) | 1 << unsigned(Touch::async_write);
  return writes(t) ? line.touched != 0 : (line.touched & writing) != 0;
}

// An atomic among atomics of its width, however many: those of device scope do not race with each other.
bool only_atomics(const Line& line, const Entry& entry) {
  constexpr std::uint8_t quiet = 1 << unsigned(Touch::strong_read) | 1 << unsigned(Touch::atomic);
  return entry.touch == Touch::atomic && (line.touched & ~quiet) == 0 && (line.atomics & (line.atomics - 1)) == 0;
}

template <class L, class F>
void each_entry(L& line, F&& f) {
  if (line.first.bytes != 0) f(line.first);
  if (line.more)
    for (auto& e : *line.more) f(e);
}

// Whether a store by the lanes of `entry` leaves these bytes of a line as they are.
bool keeps(const Access* access, const Entry& entry, std::uint64_t line_address, Bytes bytes) {
  for (; bytes != 0; bytes &= bytes - 1) {
    const unsigned byte = lowest(bytes);
    if (!stores_same_value(access, entry.lane(byte), 0, false, line_address + byte, 1)) return false;
  }
  return true;
}

}  // namespace

void GlobalRaces::touch(const BlockOrder& order, unsigned warp, Line& line, std::uint64_t line_address,
                        const Entry& entry, const Access* access) {
  line.atomics |= entry.value_bytes;
  line.quiet &= strong(entry.touch) && !entry.is_volatile && !entry.block_scope;
  const bool quiet = line.quiet && (line.atomics & (line.atomics - 1)) == 0;
  if (line.touched == 0) {
    line.first = entry;
    line.touched = static_cast<std::uint8_t>(1u << static_cast<unsigned>(entry.touch));
    return;
  }
  // The same access again: the usual case of a loop without a barrier.
  Entry& first = line.first;
  if (!line.more && first.block == entry.block && first.bytes == entry.bytes && first.touch == entry.touch &&
      first.value_bytes == entry.value_bytes && first.read_only == entry.read_only && first.same_threads(entry) &&
      first.warps == entry.warps) {
    first.stamp = entry.stamp, first.pc = entry.pc, first.sequence = entry.sequence;
    first.section = entry.section, first.unfenced = entry.unfenced;
    return;
  }
  if (may_conflict(line, entry.touch) && !(narrow_ == 0 && only_atomics(line, entry)))
    each_entry(line, [&](Entry& earlier) {
      const Bytes common = earlier.bytes & entry.bytes;
      if (common == 0 || !conflicts(earlier.touch, entry.touch)) return;
      if (!quiet) compare(order, warp, line, line_address, entry, earlier, access);
      if (strong(entry.touch) && writes(entry.touch) && writes(earlier.touch) && !earlier.overwritten)
        earlier.overwritten = !keeps(access, entry, line_address, common);
    });
  remember(order, warp, line, entry);
}

void GlobalRaces::compare(const BlockOrder& order, unsigned warp, const Line& line, std::uint64_t line_address,
                          const Entry& entry, const Entry& earlier, const Access* access) {
  const bool own_block = earlier.block == entry.block;
  const bool async_before = async(earlier.touch);
  if (entry.read_only || earlier.read_only) compare_read_only(order, warp, line_address, entry, earlier);
  if (own_block && !async_before && earlier.stamp < order.warp(warp).barrier_floor) return;
  const bool both_store = earlier.touch != Touch::atomic && writes(earlier.touch) && entry.touch != Touch::atomic &&
                          writes(entry.touch) && !async(earlier.touch) && !async(entry.touch);
  const Strong pair =
      strong(entry.touch) && strong(earlier.touch) ? strong_pair(entry, earlier, own_block) : Strong::race;
  if (pair == Strong::nothing) return;
  const bool mixed = entry.value_bytes != 0 && earlier.value_bytes != 0 && entry.value_bytes != earlier.value_bytes;
  for (Bytes rest = entry.bytes & earlier.bytes; rest != 0;) {
    const unsigned byte = lowest(rest);
    // Bytes that the same two lanes share are judged together.
    const unsigned step =
        std::min(entry.affine ? 1u << entry.shift : 128u, earlier.affine ? 1u << earlier.shift : 128u);
    const Bytes shared = rest & bytes_mask(byte / step * step, step);
    rest &= ~shared;
    const unsigned lane = entry.lane(byte);
    for (std::uint32_t warps = earlier.warps; warps != 0; warps &= warps - 1) {
      const unsigned by = static_cast<unsigned>(std::countr_zero(warps));
      Mask by_lanes = earlier.lanes_of(byte);
      if (own_block && by == warp && !async_before) by_lanes &= ~entry.lanes_of(byte);
      if (by_lanes == 0) continue;
      const unsigned actor = async_before ? async_actor(by) : by;
      for (; by_lanes != 0; by_lanes &= by_lanes - 1) {
        const unsigned by_lane = static_cast<unsigned>(std::countr_zero(by_lanes));
        const Relation relation = order.relation(warp, lane, earlier.block, actor, by_lane, earlier.stamp);
        const std::uint64_t address = line_address + byte;
        const unsigned now_actor = async(entry.touch) ? async_actor(warp) : warp;
        const Party now{entry.block, now_actor, lane, entry.pc, entry.touch},
            then{earlier.block, actor, by_lane, earlier.pc, earlier.touch};
        if (relation == Relation::ordered) {
          if (!own_block && locks_.of_one_lock(earlier.section, entry.section))
            compare_in_section(now, then, entry, earlier, order, address);
          continue;
        }
        // An atomic that an ordered, later atomic of the same place has seen: coherence orders it, no fence needed.
        if (strong(earlier.touch) && !strong(entry.touch) && seen_since(order, warp, line, earlier, lane, byte))
          continue;
        const bool one_instruction = own_block && by == warp && earlier.pc == entry.pc && earlier.stamp == entry.stamp;
        bool same = (both_store || pair == Strong::lost_update) && !earlier.overwritten;
        for (Bytes left = same ? shared : 0; left != 0 && same; left &= left - 1)
          same = stores_same_value(access, lane, by_lane, one_instruction, line_address + lowest(left), 1);
        const bool volatiles = pair == Strong::lost_update || pair == Strong::order;
        const bool only_in_block = volatiles && block_scopes_ && !own_block && relation == Relation::narrow;
        if (pair == Strong::order && !only_in_block) continue;
        if (pair == Strong::lost_update && (same || (relation != Relation::unordered && !only_in_block) ||
                                            !lost_update(order, warp, line, entry, earlier, lane, byte)))
          continue;
        const Conflict conflict = only_in_block                              ? Conflict::block_order
                                  : volatiles                                ? Conflict::volatile_data
                                  : mixed && relation != Relation::one_sided ? Conflict::mixed_width
                                                                             : conflict_of(relation, now, then, same);
        report_.race(order, now, then, earlier.stamp, relation, conflict, Space::global, address,
                     AddressSpace::instance().find(address));
        reported_ = true;
        if (!is_warning(conflict)) break;
      }
    }
  }
}

GlobalRaces::Strong GlobalRaces::strong_pair(const Entry& entry, const Entry& earlier, bool own_block) {
  if (!own_block && (entry.block_scope || earlier.block_scope)) return Strong::race;
  const bool store = entry.touch == Touch::strong_write && entry.is_volatile;
  if (earlier.touch == Touch::atomic) {
    if (entry.touch == Touch::atomic) return entry.value_bytes != earlier.value_bytes ? Strong::race : Strong::nothing;
    return store && report_.uses().is_blind_exchange(earlier.pc) ? Strong::lost_update : Strong::nothing;
  }
  if (!entry.is_volatile || !earlier.is_volatile) return Strong::nothing;
  if (own_block && (earlier.warps & entry.warps) != 0) return Strong::race;  // of one warp, in lockstep
  if (store && earlier.touch == Touch::strong_write) return Strong::lost_update;
  // What is loaded and compared may be polled for: it needs no order.
  if (own_block || !block_scopes_) return Strong::nothing;
  return report_.uses().is_flag(writes(entry.touch) ? earlier.pc : entry.pc) ? Strong::nothing : Strong::order;
}

// A load through the read-only path and a write, where the later of the two is in order: the race check has nothing to
// say.
void GlobalRaces::compare_read_only(const BlockOrder& order, unsigned warp, std::uint64_t line_address,
                                    const Entry& entry, const Entry& earlier) {
  for (Bytes rest = entry.bytes & earlier.bytes; rest != 0; rest &= rest - 1) {
    const unsigned byte = lowest(rest), lane = entry.lane(byte);
    for (std::uint32_t warps = earlier.warps; warps != 0; warps &= warps - 1) {
      const unsigned by = static_cast<unsigned>(std::countr_zero(warps));
      const Mask lanes = earlier.lanes_of(byte);
      const bool own = earlier.block == entry.block && by == warp && (lanes >> lane & 1) != 0;
      const unsigned by_lane = own ? lane : static_cast<unsigned>(std::countr_zero(lanes));
      if (!own && order.relation(warp, lane, earlier.block, by, by_lane, earlier.stamp) != Relation::ordered) continue;
      const std::uint64_t address = line_address + byte;
      const Party before{earlier.block, by, by_lane, earlier.pc, earlier.touch};
      report_.read_only({entry.block, warp, lane, entry.pc, entry.touch}, &before, address,
                        AddressSpace::instance().find(address));
      reported_ = true;
      return;
    }
  }
}

// Two accesses of sections of one lock, in order as run. The blocks may acquire the lock in the other order.
void GlobalRaces::compare_in_section(const Party& now, const Party& before, const Entry& entry, const Entry& earlier,
                                     const BlockOrder& order, std::uint64_t address) {
  if (earlier.unfenced)
    report_.race(order, before, now, entry.stamp, Relation::one_sided, Conflict::one_sided, Space::global, address,
                 AddressSpace::instance().find(address));
  Locks::note(*held_, entry.section, {now, before, entry.stamp, address});
}

// Whether a volatile store may overwrite another store that it should have come after. A flag that is set in turns is
// not such: its thread has seen the other's value and stores one of its own.
bool GlobalRaces::lost_update(const BlockOrder& order, unsigned warp, const Line& line, const Entry& entry,
                              const Entry& earlier, unsigned lane, unsigned byte) {
  return !seen_since(order, warp, line, earlier, lane, byte) || report_.uses().is_update(entry.pc);
}

// Whether a strong access to the same place after `earlier`, which may have seen it, comes before what the lane does
// now.
bool GlobalRaces::seen_since(const BlockOrder& order, unsigned warp, const Line& line, const Entry& earlier,
                             unsigned lane, unsigned byte) const {
  bool seen = false;
  each_entry(line, [&](const Entry& later) {
    if (seen || !strong(later.touch) || later.sequence <= earlier.sequence || (later.bytes >> byte & 1) == 0) return;
    const unsigned by = static_cast<unsigned>(std::countr_zero(later.warps));
    for (Mask lanes = later.lanes_of(byte); lanes != 0 && !seen; lanes &= lanes - 1)
      seen = order.relation(warp, lane, later.block, by, static_cast<unsigned>(std::countr_zero(lanes)), later.stamp) ==
             Relation::ordered;
  });
  return seen;
}

}  // namespace machine::checks
