// What an access to shared memory meets in the planes: earlier writes and reads that are not ordered before it.
//
// A vector loop over the cells of a piece asks whether any stamp is not yet known to the warp; only then are the cells
// gone through one by one, by lane, for the gravest conflict.
#include "observers/race_shared.hpp"

#include "observers/same_value.hpp"

namespace machine::checks {

void SharedRaces::check_writes(const BlockOrder& order, RaceReport& report, const Piece& at, const Who& who) {
  const Stamp floor = order.warp(who.warp).barrier_floor;
  if (newest(line_written_, at) < floor) return;
  settle(order, at);
  if (newest(line_written_, at) < floor) return;
  check_last(order, report, at, who, *at.planes);
  // A plain write that its own thread has covered by an atomic: other atomics race with it, though not with the last
  // write.
  if (strong(who.touch) && !at.planes->plain.stamp.empty()) check_last(order, report, at, who, at.planes->plain);
}

void SharedRaces::check_last(const BlockOrder& order, RaceReport& report, const Piece& at, const Who& who,
                             const Writes& last) {
  const std::uint32_t* owner = last.owner.data() + at.first;
  const std::uint32_t* stamp = last.stamp.data() + at.first;
  const std::uint32_t* upto = order.warp(who.warp).common.now.own.upto.data();
  const std::uint32_t id = who.warp << 5;
  std::uint32_t open = 0;
  if (!who.uniform) {
    for (std::uint32_t i = 0; i < at.count; ++i) {
      const std::uint32_t by = owner[i] & kWho;
      open |= (stamp[i] >= upto[by >> 5] ? 1u : 0u) & (by != (id | at.lane(who, i)) ? 1u : 0u);
    }
  } else {
    for (std::uint32_t i = 0; i < at.count; ++i) open |= stamp[i] >= upto[owner[i] >> 5 & 63] ? 1u : 0u;
  }
  if (open == 0) return;
  for (std::uint32_t i = 0; i < at.count; ++i) {
    const std::uint32_t by = owner[i] & kWho;
    if (stamp[i] < upto[by >> 5]) continue;
    const std::uint32_t pc = last.pc[at.first + i];
    judge(order, report, at, who, i, by >> 5, Mask{1} << (by & 31), kFullMask, stamp[i], pc & kPc,
          (pc & ~kPc) | 1);  // 1: the earlier access wrote
  }
}

void SharedRaces::check_reads(const BlockOrder& order, RaceReport& report, const Piece& at, const Who& who) {
  const std::uint32_t* upto = order.warp(who.warp).common.now.own.upto.data();
  for (unsigned u = 0; u < warps_; ++u) {
    const Reads& r = at.planes->reads[u];
    if (r.stamp.empty()) continue;
    const std::uint32_t* stamp = r.stamp.data() + at.first;
    const std::uint32_t* lanes = r.lanes.data() + at.first;
    const std::uint32_t floor = upto[u];
    std::uint32_t open = 0;
    if (u != who.warp) {
      for (std::uint32_t i = 0; i < at.count; ++i) open |= stamp[i] >= floor ? 1u : 0u;
    } else {
      for (std::uint32_t i = 0; i < at.count; ++i)
        open |= (stamp[i] >= floor ? ~0u : 0u) & lanes[i] & ~(1u << (at.lane(who, i) & 31));
    }
    if (open == 0) continue;
    for (std::uint32_t i = 0; i < at.count; ++i)
      if (stamp[i] >= floor)
        judge(order, report, at, who, i, u, lanes[i], r.fresh[at.first + i], stamp[i], r.pc[at.first + i] & kPc,
              r.pc[at.first + i] & ~kPc);
  }
}

// Whether the warp has looked at a cell by strong reads since the last barrier of the block.
bool SharedRaces::seen_since_barrier(const BlockOrder& order, const Piece& at, const Who& who,
                                     std::uint32_t cell) const {
  const Reads& r = at.planes->reads[who.warp];
  return !r.stamp.empty() && r.stamp[at.first + cell] >= order.warp(who.warp).barrier_floor &&
         (r.pc[at.first + cell] & kStrong) != 0;
}

// One cell, exactly: every lane that made the earlier access against every lane that makes this one. Of several
// conflicts the gravest is reported.
void SharedRaces::judge(const BlockOrder& order, RaceReport& report, const Piece& at, const Who& who,
                        std::uint32_t cell, unsigned actor, Mask by_lanes, Mask fresh, Stamp stamp, std::uint32_t pc,
                        std::uint32_t flags) {
  const bool wrote = (flags & 1) != 0;
  bool updates = false;  // volatile stores, of which one may be lost
  const bool mixed =
      (flags & kAtomic) != 0 && who.touch == Touch::atomic && pc != who.pc && report.uses().of_mixed_width(pc, who.pc);
  if ((flags & kStrong) != 0 && strong(who.touch) && !mixed) {
    const bool both_volatile = (flags & kVolatile) != 0 && who.is_volatile;
    const bool lockstep = actor == who.warp && both_volatile;
    updates = !lockstep && both_volatile && wrote && who.touch == Touch::strong_write;
    if (!lockstep && !updates) return;
  }
  // A flag that warps set in turns is none: its thread has seen the other's value and stores one of its own.
  if (updates && seen_since_barrier(order, at, who, cell) && !report.uses().is_update(who.pc)) return;
  const Touch before = (flags & kAtomic) != 0 ? Touch::atomic
                       : wrote                ? ((flags & kStrong) != 0 ? Touch::strong_write : Touch::write)
                                              : ((flags & kStrong) != 0 ? Touch::strong_read : Touch::read);
  const std::uint64_t address = at.address + (std::uint64_t{cell} << at.cell_shift);
  const Object* object = object_at(address - base_);
  const Mask mine = who.uniform ? who.lanes : Mask{1} << (at.lane(who, cell) & 31);
  for (Mask me = mine; me != 0; me &= me - 1) {
    const unsigned lane = static_cast<unsigned>(std::countr_zero(me));
    for (Mask by = by_lanes; by != 0; by &= by - 1) {
      const unsigned by_lane = static_cast<unsigned>(std::countr_zero(by));
      if (order.ordered(who.warp, lane, actor, by_lane, stamp)) continue;
      Relation relation = order.relation(who.warp, lane, order.block(), actor, by_lane, stamp);
      if (relation == Relation::ordered) continue;
      // The stamp is that of the newest read; the lane's own may have come before the warp met.
      if (relation == Relation::unordered && actor == who.warp && (fresh >> by_lane & 1) == 0) relation = Relation::met;
      const bool one_instruction = actor == who.warp && pc == who.pc && stamp == who.stamp;
      const bool same = wrote && actor < 32 && before != Touch::atomic && writes(who.touch) &&
                        stores_same_value(who.access, lane, by_lane, one_instruction, address, 1u << at.cell_shift);
      const Party now{order.block(), who.actor, lane, who.pc, who.touch},
          then{order.block(), actor, by_lane, pc, before};
      if (updates && (same || relation != Relation::unordered)) continue;
      const Conflict conflict = updates ? Conflict::volatile_data
                                : mixed ? Conflict::mixed_width
                                        : conflict_of(relation, now, then, same);
      report.race(order, now, then, stamp, relation, conflict, Space::shared, address - base_, object);
      if (!is_warning(conflict)) return;
    }
  }
}

}  // namespace machine::checks
