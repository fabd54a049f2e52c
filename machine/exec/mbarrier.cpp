#include "exec/mbarrier.hpp"

#include "exec/lanes.hpp"

namespace machine {

void check_overwritten(Warp& w, const Inst& i, Mask lanes, const std::uint64_t* address, std::uint64_t bytes) {
  if (w.observer == nullptr) return;
  Mask over = 0;
  for_lanes(lanes, [&](unsigned l) { over |= Mask{holds_mbarrier(*w.block, address[l], bytes)} << l; });
  if (over != 0)
    mbarrier_invalid(w, i, over, address, "data is written over an mbarrier that has not been invalidated");
}

}  // namespace machine
