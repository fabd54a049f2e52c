#include "exec/collective.hpp"

#include <algorithm>

#include "exec/call_stack.hpp"
#include "exec/fault.hpp"
#include "exec/fragments.hpp"
#include "exec/undefined.hpp"

namespace machine {

namespace {

std::string hex(Mask mask) {
  char text[16];
  std::snprintf(text, sizeof text, "0x%08x", mask);
  return text;
}

// All that are left of a mask have met. Lanes that it names have exited, which is right unless they took part in such a
// collective more often than these lanes did: then they came to this one with another mask. Those that name each
// other's lanes always meet together, so nothing else can make the difference.
void check_exited(const Inst& i, Warp& w, Mask lanes, Collective kind, Mask mask) {
  const Mask exited = mask & w.met_in_part & ~w.alive;
  if (exited == 0) return;
  const unsigned k = static_cast<unsigned>(kind);
  const PartMeetings& met = *w.part_meetings;
  std::uint32_t most = 0;
  for_lanes(lanes & w.met_in_part, [&](unsigned l) { most = std::max(most, met.count[k][l]); });
  Mask other = 0;
  for_lanes(exited, [&](unsigned l) { other |= Mask{met.count[k][l] > most} << l; });
  if (other == 0) return;
  const unsigned first = static_cast<unsigned>(std::countr_zero(other));
  const std::string detail = "lanes " + hex(lanes) + " name " + hex(mask) + ", of which lanes " + hex(other) +
                             " named " + hex(met.last_mask[k][first]);
  WarpPoint there = w.point(i, other);
  there.pc = met.last_pc[k][first];
  FaultEvent e;
  e.fault = Fault::mask_mismatch;
  e.lanes = lanes;
  e.detail = detail;
  e.other = &there;
  w.observer->fault(w.point(i, lanes), e);
}

// The lanes that a mask names go on together.
void completed(const Inst& i, Warp& w, Mask lanes, Collective kind, Mask mask) {
  if (w.observer == nullptr) return;
  w.observer->collective(w.point(i, lanes), kind, mask);
  const unsigned k = static_cast<unsigned>(kind);
  if (k >= PartMeetings::kKinds) return;
  check_exited(i, w, lanes, kind, mask);
  if (lanes == w.alive) return;
  if (!w.part_meetings) w.part_meetings = std::make_shared<PartMeetings>();
  PartMeetings& met = *w.part_meetings;
  w.met_in_part |= lanes;
  for_lanes(lanes, [&](unsigned l) { ++met.count[k][l], met.last_pc[k][l] = i.pc, met.last_mask[k][l] = mask; });
}

}  // namespace

Meeting meet_general(const Inst& i, Warp& w, Mask lanes, Slot members, Collective kind,
                     std::uint64_t (*bring)(const Inst&, const Warp&, unsigned)) {
  Meeting r;
  if (lanes == 0) {
    r.next = &i + 1;
    return r;
  }
  const auto* masks = w.at<const std::uint32_t>(members);
  const Mask mask = masks[std::countr_zero(lanes)];
  // Lanes with another mask are a meeting of their own: they look again when their turn comes.
  Mask same = 0;
  for_lanes(lanes, [&](unsigned l) { same |= Mask{masks[l] == mask} << l; });
  const Mask bystanders = w.active & ~lanes;
  if (same != lanes) {
    add_fragment(w, &i, w.frame, lanes & ~same);
    lanes = same;
  }
  if (bystanders != 0) add_fragment(w, &i + 1, w.frame, bystanders);
  set_active(w, lanes);
  if (w.released) {  // others have completed it
    w.released = false;
    r.ready = true;
    r.lanes = lanes;
    r.present = mask & (w.alive | lanes);
    r.staged = w.staged.data();
    return r;
  }
  if ((mask & lanes) != lanes)
    report_fault(i, w, lanes & ~mask, Fault::mask_excludes_self, "the mask leaves out lanes that execute it");
  const Mask need = (mask & w.alive) | lanes;
  // Fragments at this very instruction go with this one.
  for (std::size_t k = 0; k < w.others.size();) {
    const Fragment& f = w.others[k];
    if (f.pc == &i && f.frame == w.frame && (f.wait == Stop::collective || f.wait == Stop::paused) && !f.released &&
        masks[std::countr_zero(f.lanes)] == mask && (f.lanes & ~need) == 0) {
      lanes |= f.lanes;
      drop_frame(w, f.frame);
      w.others.erase(w.others.begin() + static_cast<std::ptrdiff_t>(k));
    } else {
      ++k;
    }
  }
  set_active(w, lanes);
  w.diverged = !w.others.empty();
  if ((need & ~lanes) == 0) {
    completed(i, w, lanes, kind, mask);
    r.ready = true;
    r.lanes = r.present = lanes;
    return r;
  }
  if (w.follows && bring != nullptr) stage_undefined(i, w, lanes);
  for_lanes(lanes, [&](unsigned l) { w.staged[l] = bring == nullptr ? 0 : bring(i, w, l); });
  // Lanes that wait elsewhere, at the same kind of collective with the same mask.
  Mask elsewhere = 0;
  for (const auto& f : w.others)
    if (f.wait == Stop::collective && f.need == mask && f.pc->fn == i.fn) elsewhere |= f.lanes;
  if ((need & ~(lanes | elsewhere)) == 0) {
    for (auto& f : w.others)
      if (f.wait == Stop::collective && f.need == mask && f.pc->fn == i.fn) f.wait = Stop::paused, f.released = true;
    completed(i, w, lanes | elsewhere, kind, mask);
    r.ready = true;
    r.lanes = lanes;
    r.present = lanes | elsewhere;
    r.staged = w.staged.data();
    return r;
  }
  w.need = mask;
  r.next = stopped(w, Stop::collective, &i);
  return r;
}

}  // namespace machine
