#include "exec/collective.hpp"

#include "exec/call_stack.hpp"
#include "exec/schedule.hpp"
#include "exec/undefined.hpp"

namespace machine {

void collective_fault(const Inst& i, Warp& w, Mask lanes, Fault fault, std::string_view detail) {
  if (w.observer == nullptr) return;
  FaultEvent e;
  e.fault = fault;
  e.lanes = lanes;
  e.detail = detail;
  w.observer->fault(w.point(i, lanes), e);
}

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
    collective_fault(i, w, lanes & ~mask, Fault::mask_excludes_self, "the mask leaves out lanes that execute it");
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
    if (w.observer != nullptr) w.observer->collective(w.point(i, lanes), kind, mask);
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
    if (w.observer != nullptr) w.observer->collective(w.point(i, lanes | elsewhere), kind, mask);
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
