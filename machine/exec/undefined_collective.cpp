// Undefined bits in what the lanes of a warp exchange.
#include <algorithm>

#include "exec/undefined.hpp"

namespace machine {
namespace {

using u64 = std::uint64_t;

// What all lanes of a meeting brought in slot i.a.
struct Brought {
  Mask lanes = 0;
  std::array<u64, kWarp> bits;
  std::array<Origin, kWarp> origins;
};
Brought brought(const Inst& i, const Warp& w, const Meeting& m) {
  Brought r;
  if (const UndefinedSlot* own = undefined_of(w, i.a)) {
    r.lanes = own->lanes & m.lanes;
    for_lanes(r.lanes, [&](unsigned l) { r.bits[l] = own->bits[l], r.origins[l] = own->origins[l]; });
  }
  if (m.staged == nullptr) return r;
  const WarpUndefined& waiting = *w.undefined;
  const Mask more = waiting.staged & m.present & ~m.lanes;
  for_lanes(more, [&](unsigned l) { r.bits[l] = waiting.staged_bits[l], r.origins[l] = waiting.staged_origins[l]; });
  r.lanes |= more;
  return r;
}

void set_all(Warp& w, Slot s, Mask lanes, u64 bits, const Origin& origin) {
  for_lanes(lanes, [&](unsigned l) { set_undefined(*w.frame, s, l, bits, origin); });
}

}  // namespace

void stage_undefined(const Inst& i, Warp& w, Mask lanes) {
  WarpUndefined& own = *w.undefined;
  own.staged &= ~lanes;
  const UndefinedSlot* u = undefined_of(w, i.a);
  if (u == nullptr) return;
  for_lanes(u->lanes & lanes,
            [&](unsigned l) { own.staged_bits[l] = u->bits[l], own.staged_origins[l] = u->origins[l]; });
  own.staged |= u->lanes & lanes;
}

void shuffled_undefined(const Inst& i, Warp& w, const Meeting& m, const std::uint32_t* from, bool fixed) {
  const Brought all = brought(i, w, m);
  Mask lost = 0;  // who does not know from where
  std::array<Origin, kWarp> lost_origins;
  if (!fixed)
    for (const Slot s : {i.b, i.c})
      if (const UndefinedSlot* u = undefined_of(w, s)) {
        for_lanes(u->lanes & m.lanes, [&](unsigned l) { lost_origins[l] = u->origins[l]; });
        lost |= u->lanes & m.lanes;
      }
  set_defined(*w.frame, i.d, m.lanes);
  if (i.extra != 0) set_defined(*w.frame, i.extra, m.lanes);
  for_lanes(m.lanes, [&](unsigned l) {
    if ((lost >> l & 1) != 0) {
      set_undefined(*w.frame, i.d, l, 0xffffffffu, lost_origins[l]);
      if (i.extra != 0) set_undefined(*w.frame, i.extra, l, 1, lost_origins[l]);
    } else if ((all.lanes >> from[l] & 1) != 0) {
      set_undefined(*w.frame, i.d, l, all.bits[from[l]], all.origins[from[l]]);
    }
  });
}

const Inst* shuffled_absent(const Inst& i, Warp& w, Mask lanes) {
  if (w.worker->undefined == nullptr) return &i + 1;
  for_lanes(lanes, [&](unsigned l) {
    set_undefined(
        *w.frame, i.d, l, 0xffffffffu,
        {0, i.pc, static_cast<std::uint8_t>(w.index), static_cast<std::uint8_t>(l), Origin::Kind::absent, true});
  });
  return follow(w, &i + 1);
}

void voted_undefined(const Inst& i, Warp& w, const Meeting& m, Vote vote, Mask predicate) {
  const Brought all = brought(i, w, m);
  set_defined(*w.frame, i.d, m.lanes);
  if (all.lanes == 0) return;
  const Origin& origin = all.origins[static_cast<unsigned>(std::countr_zero(all.lanes))];
  if (vote == Vote::ballot) return set_all(w, i.d, m.lanes, all.lanes, origin);
  const Mask sure = m.present & ~all.lanes, yes = predicate & sure, no = ~predicate & sure;
  const bool settled = vote == Vote::any ? yes != 0 : vote == Vote::all ? no != 0 : yes != 0 && no != 0;
  if (!settled) set_all(w, i.d, m.lanes, 1, origin);
}

void joined_undefined(const Inst& i, Warp& w, const Meeting& m, bool bitwise) {
  const Brought all = brought(i, w, m);
  set_defined(*w.frame, i.d, m.lanes);
  if (i.extra != 0) set_defined(*w.frame, i.extra, m.lanes);
  if (all.lanes == 0) return;
  Origin origin = all.origins[static_cast<unsigned>(std::countr_zero(all.lanes))];
  origin.computed = true;
  u64 bits = 0;
  for_lanes(all.lanes, [&](unsigned l) { bits |= all.bits[l]; });
  set_all(w, i.d, m.lanes, bitwise ? bits : 0xffffffffu, origin);
  if (i.extra != 0) set_all(w, i.extra, m.lanes, 1, origin);
}

void transposed_undefined(const Inst& i, Warp& w, const Meeting& m) {
  const Brought all = brought(i, w, m);
  set_defined(*w.frame, i.d, m.lanes);
  // Lane l holds elements (2 quad, group) and (2 quad + 1, group) of what lay as (group, 2 quad) and (group, 2 quad +
  // 1).
  for_lanes(m.lanes, [&](unsigned l) {
    u64 bits = 0;
    const Origin* origin = nullptr;
    for (unsigned h = 0; h < 2; ++h) {
      const unsigned row = l % 4 * 2 + h, column = l / 4, source = row * 4 + column / 2;
      if ((all.lanes >> source & 1) == 0) continue;
      const u64 half = all.bits[source] >> (16 * (column % 2)) & 0xffff;
      if (half != 0 && origin == nullptr) origin = &all.origins[source];
      bits |= half << (16 * h);
    }
    if (origin != nullptr) set_undefined(*w.frame, i.d, l, bits, *origin);
  });
}

}  // namespace machine
