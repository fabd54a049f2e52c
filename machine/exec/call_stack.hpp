// The frames of a warp: registers and local memory of each function that its lanes are in.
//
// How much stack a chain of calls needs is known before the launch unless functions call themselves, or ask for memory
// on the stack (alloca). Then cudaLimitStackSize says how much there is. ptxas decides how large a frame really is; it
// is never smaller than what is counted here: the function's arrays, and the place to return to.
#pragma once

#include "exec/program.hpp"
#include "exec/warp.hpp"

namespace machine {

// What a frame occupies of the thread's local memory: the next one begins aligned for any vector.
inline std::uint32_t stack_space(const Function& f) { return (f.local.bytes + 31) / 32 * 32; }
// What it occupies of the stack at least.
inline std::uint32_t stack_charge(const Function& f) { return (f.local.bytes + 7) / 8 * 8 + (f.calls ? 8 : 0); }

// Of the deepest chain of calls from the kernel.
StackNeed stack_need(const std::deque<Function>& functions);

// A frame above `caller`, which lanes in `lanes` of the caller enter.
Frame* push_frame(Warp& w, const Function& function, Frame* caller, const Inst* call, const Slot* passing, Mask lanes);
void drop_frame(Warp& w, Frame* frame, std::uint32_t fragments = 1);
// Whether there is stack for it.
bool fits_stack(const Warp& w, const Function& function, const Frame& caller, Mask lanes);
// The warp executes in this frame: its registers, and the constants of its function.
inline void use_frame(Warp& w, Frame* frame) {
  w.frame = frame;
  w.bank[0] = frame->registers;
  w.bank[1] = const_cast<std::byte*>(frame->function->constants.data());
}
// What a slot of an instruction holds for lanes in `frame`, which the warp may not be executing in.
template <class T>
const T* at_frame(const Warp& w, const Frame& frame, Slot s) {
  const std::byte* bank[3] = {frame.registers, frame.function->constants.data(), w.bank[2]};
  return reinterpret_cast<const T*>(bank[s & 3] + (s & ~Slot{3}));
}

// The stack is exhausted: reported, and the launch is over.
const Inst* overflow_stack(const Inst& i, Warp& w, Mask lanes);

}  // namespace machine
