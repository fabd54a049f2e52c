// Control flow: bra brx call ret exit trap brkpt nanosleep griddepcontrol pmevent setmaxnreg.
#include <cstring>

#include "families.hpp"
#include "memory_access.hpp"
#include "print.hpp"
#include "schedule.hpp"
#include "undefined.hpp"

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
      abort_launch(w, i, LaunchStatus::trap, "branch index " + std::to_string(k) + " beyond a table of " + std::to_string(i.extra), same);
      return nullptr;
    }
    offer(table[k], same);
  }
  if (rest != 0) offer(&i + 1, rest);
  set_active(w, best_lanes);
  return best;
}

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

// slot list: arguments, results, then (caller, callee, bytes, register) for each
const Inst* call(const Inst& i, Warp& w, Mask mask) {
  const Mask lanes = mask & w.active;
  if (lanes == 0) return &i + 1;
  const auto* callee = reinterpret_cast<const Function*>(i.imm);
  Frame* caller = w.frame;
  if (caller->base + stack_space(*caller->function) + callee->local.bytes > w.local_bytes || caller->depth > 2000) {
    if (w.observer != nullptr) {
      FaultEvent e;
      e.fault = Fault::stack_overflow;
      e.lanes = lanes;
      w.observer->fault(w.point(i, lanes), e);
    }
    abort_launch(w, i, LaunchStatus::stack_overflow, "the stack of calls is exhausted", lanes);
    return nullptr;
  }
  const Mask rest = w.active & ~lanes;
  Frame* f = push_frame(w, *callee, caller, &i);
  if (rest != 0) add_fragment(w, &i + 1, caller, rest);
  const Slot* s = i.slots + 2;
  for (Slot k = 0; k < i.slots[0]; ++k, s += 3) {
    for (std::uint32_t word = 0; word < s[2] / 4; ++word)
      blend(reinterpret_cast<std::uint32_t*>(f->registers + (s[1] & ~Slot{3}) + word * 128), w.at<const std::uint32_t>(s[0]) + word * 32, lanes);
    if (w.follows) [[unlikely]]
      for (std::uint32_t word = 0; word < s[2] / 4; ++word) copy_undefined(*caller, s[0] + word * 128, *f, s[1] + word * 128, lanes);
  }
  w.frame = f;
  w.bank[0] = f->registers;
  w.bank[1] = const_cast<std::byte*>(callee->constants.data());
  set_active(w, lanes);
  if (w.observer != nullptr && callee->local.bytes != 0) w.observer->function_entered(w.point(i, lanes));
  return callee->code.data();
}

const Inst* give_back(const Inst& i, Warp& w, Mask mask) {
  if (w.frame->caller == nullptr) return leave(i, w, mask);
  const Mask lanes = mask & w.active;
  if (lanes == 0) return &i + 1;
  Frame* from = w.frame;
  Frame* to = from->caller;
  const Inst* call_site = from->call;
  const Slot* s = call_site->slots + 2 + call_site->slots[0] * 3;
  for (Slot k = 0; k < call_site->slots[1]; ++k, s += 3)
    for (std::uint32_t word = 0; word < s[2] / 4; ++word) {
      blend(reinterpret_cast<std::uint32_t*>(to->registers + (s[0] & ~Slot{3}) + word * 128), w.at<const std::uint32_t>(s[1]) + word * 32, lanes);
      if (w.follows) [[unlikely]] copy_undefined(*from, s[1] + word * 128, *to, s[0] + word * 128, lanes);
    }
  add_fragment(w, call_site + 1, to, lanes);
  set_active(w, w.active & ~lanes);
  if (w.active != 0) return &i + 1;
  drop_frame(w, from);
  if (from->fragments == 0) --to->fragments;  // the claim that the callee held
  return next_fragment(w);
}

const Inst* trap(const Inst& i, Warp& w, Mask mask) {
  const Mask lanes = mask & w.active;
  if (lanes == 0) return &i + 1;
  const bool breakpoint = i.extra != 0;
  if (w.observer != nullptr) {
    FaultEvent e;
    e.fault = breakpoint ? Fault::breakpoint : Fault::trap;
    e.lanes = lanes;
    w.observer->fault(w.point(i, lanes), e);
  }
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

// ---- printf and assert -------------------------------------------------------------------------------------------

std::uint64_t argument(const Warp& w, Slot area, unsigned lane, unsigned bytes) {
  std::uint32_t low = w.at<const std::uint32_t>(area)[lane], high = 0;
  if (bytes == 8) high = w.at<const std::uint32_t>(area)[32 + lane];
  return std::uint64_t{high} << 32 | low;
}

// What is printed leaves the program. Its arguments lie in local memory.
void require_printed_defined(const Inst& i, Warp& w, unsigned lane, std::uint64_t arguments, std::span<const PrintedArgument> printed) {
  const std::uint64_t first = arguments - kLocalWindow;
  if (!w.worker->memory_undefined || first >= kWindowBytes) return;
  for (const PrintedArgument& argument : printed) {
    Access a;
    a.space = Space::local;
    a.shape = Shape::uniform;
    a.width = argument.bytes;
    a.lanes = a.breaks = Mask{1} << lane;
    w.address()[lane] = first + argument.offset;
    a.address = w.address();
    Undefined& u = *w.worker->undefined;
    a.undefined = &u;
    u.lanes = 0;
    w.observer->access(w.point(i, a.lanes), a);
    if (u.lanes != 0) tell_undefined(i, w, UndefinedUse::printed, a.lanes, u.origins[lane]);
    u.lanes = 0;
  }
}

// slots: format, arguments, result
const Inst* vprintf(const Inst& i, Warp& w, Mask mask) {
  const Mask lanes = mask & w.active;
  for_lanes(lanes, [&](unsigned l) {
    std::vector<PrintedArgument> printed;
    const std::uint64_t arguments = argument(w, i.slots[1], l, 8);
    const int n = print_formatted(w, argument(w, i.slots[0], l, 8), arguments, l, w.worker->printed, printed);
    require_printed_defined(i, w, l, arguments, printed);
    if (i.slots[2] != 0) w.at<std::uint32_t>(i.slots[2])[l] = static_cast<std::uint32_t>(n);
  });
  return &i + 1;
}

// slots: message, file, line, function
const Inst* assertfail(const Inst& i, Warp& w, Mask mask) {
  const Mask lanes = mask & w.active;
  if (lanes == 0) return &i + 1;
  const unsigned l = static_cast<unsigned>(std::countr_zero(lanes));
  const std::string text = read_string(w, argument(w, i.slots[1], l, 8), l) + ":" + std::to_string(argument(w, i.slots[2], l, 4)) + ": " +
                           read_string(w, argument(w, i.slots[3], l, 8), l) + ": Assertion `" + read_string(w, argument(w, i.slots[0], l, 8), l) + "` failed";
  if (w.observer != nullptr) {
    FaultEvent e;
    e.fault = Fault::assertion;
    e.lanes = lanes;
    e.detail = text;
    w.observer->fault(w.point(i, lanes), e);
  }
  const auto& id = w.block->info.id;
  const Dim3& b = w.worker->request->block;
  for_lanes(lanes, [&](unsigned lane) {
    const std::uint32_t t = w.index * kWarp + lane;
    char where[160];
    std::snprintf(where, sizeof where, ": block: [%u,%u,%u], thread: [%u,%u,%u] ", id.x, id.y, id.z, t % b.x, t / b.x % b.y, t / b.x / b.y);
    const auto cut = text.find(": Assertion");
    w.worker->printed += text.substr(0, cut) + where + text.substr(cut + 2) + ".\n";
  });
  abort_launch(w, i, LaunchStatus::assertion, text, lanes);
  return nullptr;
}

// ---- decoding ----------------------------------------------------------------------------------------------------

void bra(Decoder& d) {
  d.take("uni");
  d.end(1);
  if (d.operand(0).kind != Operand::name) d.fail("needs a label");
  Inst& i = d.emit(branch);
  d.label_target(i, d.operand(0).text);
  d.ends_block(false);
}

void brx(Decoder& d) {
  if (!d.take("idx")) d.fail("needs .idx");
  d.take("uni");
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

Slot area_of(Decoder& d, const Operand& o, unsigned bytes) {
  const ParamArea* area = o.kind == Operand::name ? d.area(o.text) : nullptr;
  if (area == nullptr || area->bytes < bytes) d.fail("argument '" + std::string(o.text) + "' is no parameter of " + std::to_string(bytes) + " bytes");
  return area->slot;
}

void call_decode(Decoder& d) {
  d.take("uni");
  d.end(1, 4);
  std::size_t at = 0;
  std::vector<Operand> results, arguments;
  if (d.operand(0).kind == Operand::list) results = d.operand(at++).parts;
  if (at >= d.count() || d.operand(at).kind != Operand::name) d.fail("needs a function");
  const auto name = d.operand(at).text;
  if (d.is_register(d.operand(at))) d.fail("an indirect call is not supported");
  ++at;
  if (at < d.count() && d.operand(at).kind == Operand::list) arguments = d.operand(at++).parts;
  if (at != d.count()) d.fail("an indirect call is not supported");
  if (name == "vprintf") {
    if (arguments.size() != 2 || results.size() > 1) d.fail("vprintf takes two arguments");
    const Slot* s = d.keep({area_of(d, arguments[0], 8), area_of(d, arguments[1], 8), results.empty() ? 0 : area_of(d, results[0], 4)});
    d.emit(vprintf).slots = s;
    return;
  }
  if (name == "__assertfail") {
    if (arguments.size() != 5) d.fail("__assertfail takes five arguments");
    const Slot* s = d.keep({area_of(d, arguments[0], 8), area_of(d, arguments[1], 8), area_of(d, arguments[2], 4), area_of(d, arguments[3], 8)});
    d.emit(assertfail).slots = s;
    d.ends_block();
    return;
  }
  Function* callee = d.callee(name);
  if (callee->formals.size() != arguments.size() || callee->results.size() != results.size()) d.fail("wrong number of arguments for '" + std::string(name) + "'");
  std::vector<Slot> slots = {static_cast<Slot>(arguments.size()), static_cast<Slot>(results.size())};
  auto add = [&](const Operand& o, const ParamArea& formal) {
    if (formal.is_register) d.fail("register parameters of '" + std::string(name) + "' are not supported");
    slots.push_back(area_of(d, o, formal.bytes));
    slots.push_back(formal.slot);
    slots.push_back(formal.bytes);
  };
  for (std::size_t k = 0; k < arguments.size(); ++k) add(arguments[k], callee->formals[k]);
  for (std::size_t k = 0; k < results.size(); ++k) add(results[k], callee->results[k]);
  const Slot* kept = d.keep(std::move(slots));
  Inst& i = d.emit(call);
  i.slots = kept;
  i.imm = reinterpret_cast<std::int64_t>(callee);
  d.calls_function(*callee);
  d.ends_block();
}

void ret(Decoder& d) {
  d.take("uni");
  d.end(0);
  d.emit(give_back);
  d.thread_ends();
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
  const int what = d.take_one({"wait", "launch_dependents"});
  if (what < 0) d.fail("needs .wait or .launch_dependents");
  d.end(0);
  d.emit(dependency).extra = static_cast<std::uint32_t>(what);
  if (what != 0) return;
  if (!d.program.waits_for_dependency) d.program.waits_first = d.function.is_kernel && d.untouched_memory();
  d.program.waits_for_dependency = true;
}
// How many registers a warp has is the hardware's affair: a hint that changes no value.
void setmaxnreg(Decoder& d) {
  if (d.take_one({"inc", "dec"}) < 0 || !d.take("sync") || !d.take("aligned")) d.fail("needs .inc or .dec, and .sync.aligned");
  d.type({Type::u32});
  d.end(1);
  const auto count = d.immediate(0);
  if (count < 24 || count > 256 || count % 8 != 0) d.fail("the number of registers must be a multiple of 8 from 24 to 256");
  d.emit(nothing);
}
void pmevent(Decoder& d) {
  d.take("mask");
  d.end(1);
  d.immediate(0);
  d.emit(nothing);
}

}  // namespace

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
      {"bra", bra, k}, {"brx", brx, k}, {"call", call_decode, k}, {"ret", ret, k}, {"exit", exit_decode, k},
      {"trap", [](Decoder& d) { trap_decode(d, false); }, k}, {"brkpt", [](Decoder& d) { trap_decode(d, true); }, k},
      {"nanosleep", nanosleep_decode, k}, {"griddepcontrol", griddepcontrol, k}, {"pmevent", pmevent, k},
      {"setmaxnreg", setmaxnreg, k},
  };
  return table;
}

}  // namespace machine
