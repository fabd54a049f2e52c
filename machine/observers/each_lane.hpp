#pragma once

#include <bit>

#include "events/access.hpp"

namespace machine::checks {

// Calls f(lane) for each lane of the mask, from the lowest.
template <class F>
[[gnu::always_inline]] inline void each_lane(Mask lanes, F&& f) {
  for (; lanes != 0; lanes &= lanes - 1) f(static_cast<unsigned>(std::countr_zero(lanes)));
}

}  // namespace machine::checks
