// When a grid will never move again.
//
// While no byte of shared or global memory changes and no block begins or ends, a warp that can run depends on its own
// registers and local memory alone. A warp that is again what it was will be so for ever; when all that can run are,
// the grid is dead. Registers that a clock decides do not count, but then the clock leaps by an hour in between: a wait
// with a time limit comes to its end. A wait that counts its turns is never again what it was: it gets a long time, and
// a kernel of which every warp has polled all that time counts as dead as well.
#pragma once

#include <cstdint>
#include <span>

#include "exec/warp.hpp"

namespace machine {

class Stillness {
 public:
  // After a round over the resident blocks. `moved`: a block has begun or ended. True: nothing will ever change.
  bool reached(Worker& k, std::span<Block* const> resident, bool moved);
  // Looks anew, as after something that only the host could do.
  void restart(Worker& k);

 private:
  std::uint64_t changes_ = 0, rounds_ = 0, stretches_ = 0;
  std::uint64_t window_ = 0;  // where in the worker's instructions the window at hand began
  unsigned windows_ = 0;      // in a row in which every warp polled
};

// After a turn in a still stretch: whether the warp is what it was before.
void look_at(Warp& w);

}  // namespace machine
