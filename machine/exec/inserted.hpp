// Handlers of instructions that no PTX text holds: the decoder puts them between those that it does.
#pragma once

#include "exec/warp.hpp"

namespace machine {

// Switches the host's floating-point control register to `imm` when the worker is not in that mode.
const Inst* set_mode(const Inst& i, Warp& w, Mask mask);
// Lanes that read a register (b, of `extra` bytes) which they have not written (a) have an undefined value.
const Inst* check_written(const Inst& i, Warp& w, Mask mask);
const Inst* mark_written(const Inst& i, Warp& w, Mask mask);
// First instruction of every basic block: counts, and the place where fragments meet and give way.
const Inst* enter_block(const Inst& i, Warp& w, Mask mask);

}  // namespace machine
