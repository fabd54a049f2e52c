// The frames of a warp: registers and local memory of each function that its lanes are in.
//
// How much stack a chain of calls takes is known before the launch unless functions call themselves, or ask for memory
// on the stack (alloca). Then cudaLimitStackSize says how much there is. ptxas decides how large a frame really is; it
// is never smaller than what is counted here: the function's arrays, and the place to return to.
#pragma once

#include "exec/warp.hpp"

namespace machine {

// What a frame takes of the thread's local memory: the next one begins aligned for any vector.
inline std::uint32_t stack_space(const Function& f) { return (f.local.bytes + 31) / 32 * 32; }
// What it takes of the stack at least.
inline std::uint32_t stack_charge(const Function& f) { return (f.local.bytes + 7) / 8 * 8 + (f.calls ? 8 : 0); }

// Of the deepest chain of calls from the kernel.
StackNeed stack_need(const std::deque<Function>& functions);

// A frame above `caller`, which lanes in `lanes` of the caller enter.
Frame* push_frame(Warp& w, const Function& function, Frame* caller, const Inst* call, const Slot* passing, Mask lanes);
void drop_frame(Warp& w, Frame* frame, std::uint32_t fragments = 1);
// Whether there is stack for it.
bool fits_stack(const Warp& w, const Function& function, const Frame& caller, Mask lanes);
// The stack is exhausted: told, and the launch is over.
const Inst* overflow_stack(const Inst& i, Warp& w, Mask lanes);

}  // namespace machine
