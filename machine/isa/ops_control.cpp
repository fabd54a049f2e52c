// Control flow: bra brx exit trap brkpt nanosleep griddepcontrol pmevent setmaxnreg.
#include "exec/call_stack.hpp"
#include "exec/fault.hpp"
#include "exec/fragments.hpp"
#include "exec/lanes.hpp"
#include "isa/families.hpp"

namespace machine {
namespace {

const Inst* branch(const Inst& i, Warp& w, Mask mask) {
  const Mask taken = mask & w.active;
  if (taken == w.active) return i.target;
  const Inst* next = &i + 1;
  if (taken == 0) return next;
  const Mask rest = w.active & ~taken;
  if (i.target->pc < next->pc) {
    add_fragment(w, next, w.frame, rest);
    set_active(w, taken);
    return i.target;
  }
  add_fragment(w, i.target, w.frame, taken);
  set_active(w, rest);
  return next;
}

// Indexed branch: lanes are grouped by where they go; the lowest target runs on.
const Inst* branch_indexed(const Inst& i, Warp& w, Mask mask) {
  const auto* index = w.at<const std::uint32_t>(i.a);
  const Inst* const* table = static_cast<const Inst* const*>(i.data);
  Mask left = mask & w.active;
  const Mask rest = w.active & ~left;
  const Inst* best = nullptr;
  Mask best_lanes = 0;
  auto offer = [&](const Inst* pc, Mask lanes) {
    if (best == nullptr) {
      best = pc, best_lanes = lanes;
    } else if (pc->pc < best->pc) {
      add_fragment(w, best, w.frame, best_lanes);
      best = pc, best_lanes = lanes;
    } else {
      add_fragment(w, pc, w.frame, lanes);
    }
  };
  while (left != 0) {
    const std::uint32_t k = index[std::countr_zero(left)];
    Mask same = 0;
    for_lanes(left, [&](unsigned l) { same |= Mask{index[l] == k} << l; });
    left &= ~same;
    if (k >= i.extra) {
      abort_launch(w, i, LaunchStatus::trap,
                   "branch index " + std::to_string(k) + " beyond a table of " + std::to_string(i.extra), same);
      return nullptr;
    }
    offer(table[k], same);
  }
  if (rest != 0) offer(&i + 1, rest);
  set_active(w, best_lanes);
  return best;
}

const Inst* trap(const Inst& i, Warp& w, Mask mask) {
  const Mask lanes = mask & w.active;
  if (lanes == 0) return &i + 1;
  const bool breakpoint = i.extra != 0;
  const bool alone = !breakpoint && w.worker->program->grid_sync && !w.worker->launch->cooperative;
  report_fault(i, w, lanes, breakpoint ? Fault::breakpoint : Fault::trap,
               alone ? "the kernel calls grid.sync(), which traps outside a cooperative launch: launch it by "
                       "cudaLaunchCooperativeKernel, or with cudaLaunchAttributeCooperative"
                     : "");
  abort_launch(w, i, LaunchStatus::trap, breakpoint ? "breakpoint" : "trap", lanes);
  return nullptr;
}

const Inst* nanosleep(const Inst& i, Warp& w, Mask mask) {
  const Mask lanes = mask & w.active;
  if (lanes == 0) return &i + 1;
  ++w.worker->clock;  // time passes: what sleeps between its polls waits with a pace, or with an end
  return stopped(w, Stop::yielded, &i + 1);
}

const Inst* dependency(const Inst& i, Warp& w, Mask mask) {
  const Mask lanes = mask & w.active;
  if (lanes == 0) return &i + 1;
  if (i.extra == 0) {
    if (!w.worker->dependency_passed) {
      w.worker->dependency_passed = true;
      if (w.worker->request->dependency_wait) w.worker->request->dependency_wait();
      w.worker->mode = ~0u;  // the callback may have run another launch on this thread
    }
    if (w.observer != nullptr) w.observer->dependency_wait(w.point(i, lanes));
  } else if (w.observer != nullptr) {
    w.observer->dependency_launch(w.point(i, lanes));
  }
  return &i + 1;
}

const Inst* nothing(const Inst& i, Warp&, Mask) { return &i + 1; }

// ---- decoding ----------------------------------------------------------------------------------------------------

void bra(Decoder& d) {
  d.accept("uni");
  d.end(1);
  if (d.operand(0).kind != Operand::name) d.fail("needs a label");
  Inst& i = d.emit(branch);
  d.label_target(i, d.operand(0).text);
  d.ends_block(false);
}

void brx(Decoder& d) {
  if (!d.accept("idx")) d.fail("needs .idx");
  d.accept("uni");
  d.end(2);
  const auto* list = d.branch_targets(d.operand(1).text);
  if (list == nullptr) d.fail("unknown target list '" + std::string(d.operand(1).text) + "'");
  const Slot a = d.source(0, Type::u32);
  const auto table = d.new_table(list->size());
  for (std::size_t k = 0; k < list->size(); ++k) d.table_target(table, k, (*list)[k]);
  Inst& i = d.emit(branch_indexed);
  i.a = a, i.extra = static_cast<std::uint32_t>(list->size());
  d.use_table(i, table);
  d.ends_block(false);
}

void exit_decode(Decoder& d) {
  d.end(0);
  d.emit(leave);
  d.thread_ends();
  d.ends_block(false);
}
void trap_decode(Decoder& d, bool breakpoint) {
  d.end(0);
  d.emit(trap).extra = breakpoint ? 1 : 0;
  d.ends_block(false);
}
void nanosleep_decode(Decoder& d) {
  d.type({Type::u32});
  d.end(1);
  d.source(0, Type::u32);
  d.emit(nanosleep);
  d.ends_block();
}
void griddepcontrol(Decoder& d) {
  const int what = d.accept_one({"wait", "launch_dependents"});
  if (what < 0) d.fail("needs .wait or .launch_dependents");
  d.end(0);
  d.emit(dependency).extra = static_cast<std::uint32_t>(what);
  if (what != 0) return;
  if (!d.program.waits_for_dependency) d.program.waits_first = d.function.is_kernel && d.untouched_memory();
  d.program.waits_for_dependency = true;
}
// How many registers a warp has is the hardware's affair: a hint that changes no value.
void setmaxnreg(Decoder& d) {
  if (d.accept_one({"inc", "dec"}) < 0 || !d.accept("sync") || !d.accept("aligned"))
    d.fail("needs .inc or .dec, and .sync.aligned");
  d.type({Type::u32});
  d.end(1);
  const auto count = d.immediate(0);
  if (count < 24 || count > 256 || count % 8 != 0)
    d.fail("the number of registers must be a multiple of 8 from 24 to 256");
  d.emit(nothing);
}
void pmevent(Decoder& d) {
  d.accept("mask");
  d.end(1);
  d.immediate(0);
  d.emit(nothing);
}

}  // namespace

const Inst* leave(const Inst& i, Warp& w, Mask mask) {
  const Mask lanes = mask & w.active;
  if (lanes == 0) return &i + 1;
  exit_lanes(w, i, lanes);
  if (w.active == 0) {
    drop_frame(w, w.frame);
    return next_fragment(w);
  }
  return &i + 1;
}

const Inst* branch_past_barriers(const Inst& i, Warp& w, Mask mask) {
  const Mask taken = mask & w.active;
  const Mask past = region_at(i).past_when_taken ? taken : w.active & ~taken;
  if (past != 0) pass_by(w, i, past);
  return branch(i, w, mask);
}

const Inst* branch_indexed_past_barriers(const Inst& i, Warp& w, Mask mask) {
  const auto* index = w.at<const std::uint32_t>(i.a);
  const auto& past_at = region_at(i).past_at;
  Mask past = 0;
  for_lanes(mask & w.active, [&](unsigned l) { past |= Mask{index[l] < past_at.size() && past_at[index[l]]} << l; });
  if (past != 0) pass_by(w, i, past);
  return branch_indexed(i, w, mask);
}

std::span<const Opcode> control_opcodes() {
  static constexpr auto k = InstructionClass::control;
  static const Opcode table[] = {
      {"bra", bra, k},
      {"brx", brx, k},
      {"exit", exit_decode, k},
      {"trap", [](Decoder& d) { trap_decode(d, false); }, k},
      {"brkpt", [](Decoder& d) { trap_decode(d, true); }, k},
      {"nanosleep", nanosleep_decode, k},
      {"griddepcontrol", griddepcontrol, k},
      {"pmevent", pmevent, k},
      {"setmaxnreg", setmaxnreg, k},
  };
  return table;
}

}  // namespace machine
