// How the lanes that a mask names come together.
#pragma once

#include "exec/lanes.hpp"

namespace machine {

// What a collective sees when its lanes have met.
struct Meeting {
  bool ready = false;
  const Inst* next = nullptr;             // not ready: what the handler returns
  Mask lanes = 0;                         // lanes of the running fragment, which get results
  Mask present = 0;                       // all lanes that take part
  const std::uint64_t* staged = nullptr;  // what lanes outside `lanes` have brought; null when there are none
};

// The collectives that lanes have taken part in without the rest of their warp, by kind and lane.
struct PartMeetings {
  static constexpr unsigned kKinds = static_cast<unsigned>(Collective::elect) + 1;
  std::array<std::array<std::uint32_t, kWarp>, kKinds> count{};
  std::array<std::array<std::uint32_t, kWarp>, kKinds> last_pc{};
  std::array<std::array<Mask, kWarp>, kKinds> last_mask{};
};

// The lanes in `mask` arrive at `i` with the member masks in slot `members`. `bring(lane)` is what a lane contributes,
// needed only when lanes meet from different instructions.
Meeting meet_general(const Inst& i, Warp& w, Mask lanes, Slot members, Collective kind,
                     std::uint64_t (*bring)(const Inst&, const Warp&, unsigned lane));

inline Meeting meet(const Inst& i, Warp& w, Mask mask, Slot members, Collective kind,
                    std::uint64_t (*bring)(const Inst&, const Warp&, unsigned lane)) {
  const Mask lanes = mask & w.active;
  const auto* m = w.at<const std::uint32_t>(members);
  // The usual case: the whole warp, converged, one constant mask that names nobody who has met others apart.
  if (lanes == w.alive && (members & 3) == static_cast<Slot>(Bank::constants) &&
      (m[0] & (w.alive | w.met_in_part)) == lanes && !w.diverged) [[likely]] {
    if (w.observer != nullptr) w.observer->collective(w.point(i, lanes), kind, m[0]);
    Meeting r;
    r.ready = true;
    r.lanes = r.present = lanes;
    return r;
  }
  return meet_general(i, w, lanes, members, kind, bring);
}

}  // namespace machine
