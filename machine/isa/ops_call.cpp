// Calls: call by name and by address, ret.
//
// How values pass is a list of slots: how many arguments, how many results, then (in the caller, in the callee, bytes
// of an element, elements) for each. A .param area is a row of 4-byte elements, a register is one element.
#include <algorithm>

#include "exec/call_stack.hpp"
#include "exec/fault.hpp"
#include "exec/fragments.hpp"
#include "exec/lanes.hpp"
#include "exec/undefined.hpp"
#include "isa/families.hpp"

namespace machine {
namespace {

constexpr std::uint64_t kMostRegisterBytes = 64 << 20;  // of the frames of one warp

void copy_element(const std::byte* from, std::byte* to, Slot bytes, Mask lanes) {
  if (bytes == 4)
    return blend(reinterpret_cast<std::uint32_t*>(to), reinterpret_cast<const std::uint32_t*>(from), lanes);
  for_lanes(lanes, [&](unsigned l) { std::copy_n(from + l * bytes, bytes, to + l * bytes); });
}

// Copies one value from the running frame, where it is at `own`, to another.
void pass(const Warp& w, Slot own, Frame& other, Slot there, Slot bytes, Slot elements, Mask lanes) {
  for (Slot k = 0; k < elements; ++k, own += bytes * kWarp, there += bytes * kWarp) {
    copy_element(w.at<const std::byte>(own), other.registers + (there & ~Slot{3}), bytes, lanes);
    if (w.follows) [[unlikely]]
      copy_undefined(*w.frame, own, other, there, lanes);
  }
}

// The frame of a call of `callee` by `lanes`, with their arguments; null: the launch is over.
Frame* enter(const Inst& i, Warp& w, const Function& callee, const Slot* passing, Mask lanes) {
  if (!fits_stack(w, callee, *w.frame, lanes)) {
    overflow_stack(i, w, lanes);
    return nullptr;
  }
  if (w.register_bytes > kMostRegisterBytes) {
    abort_launch(w, i, LaunchStatus::unsupported,
                 "calls are " + std::to_string(w.frame->depth) + " deep, which is more than the CPU device holds",
                 lanes);
    return nullptr;
  }
  Frame* f = push_frame(w, callee, w.frame, &i, passing, lanes);
  const Slot* s = passing + 2;
  for (Slot k = 0; k < passing[0]; ++k, s += 4) pass(w, s[0], *f, s[1], s[2], s[3], lanes);
  if (w.observer != nullptr && callee.local.bytes != 0) {
    WarpPoint point = w.point(i, lanes);
    point.frame = f;
    w.observer->function_entered(point);
  }
  return f;
}

const Inst* run_in(Warp& w, Frame* f, Mask lanes) {
  use_frame(w, f);
  set_active(w, lanes);
  return f->function->code.data();
}

const Inst* call(const Inst& i, Warp& w, Mask mask) {
  const Mask lanes = mask & w.active;
  if (lanes == 0) return &i + 1;
  Frame* f = enter(i, w, *reinterpret_cast<const Function*>(i.imm), i.slots, lanes);
  if (f == nullptr) return nullptr;
  if (const Mask rest = w.active & ~lanes; rest != 0) add_fragment(w, &i + 1, w.frame, rest);
  return run_in(w, f, lanes);
}

const Inst* refuse_call(const Inst& i, Warp& w, const CallTargets& targets, std::uint64_t address, Mask lanes) {
  std::string what = describe_code(address);
  if (what.find("function '") != std::string::npos)
    what += targets.listed ? ", which is not among the targets that the call names"
                           : ", which takes or returns other things than the call passes, or is of another module";
  report_fault(i, w, lanes, Fault::invalid_call, what);
  abort_launch(w, i, LaunchStatus::invalid_call, "invalid call: " + what, lanes);
  return nullptr;
}

// Lanes are grouped by where they go. Each group has a frame of its own, and all meet again behind the call.
const Inst* call_by_address(const Inst& i, Warp& w, Mask mask) {
  const Mask lanes = mask & w.active;
  if (lanes == 0) return &i + 1;
  if (w.follows) [[unlikely]]
    require_defined(i, w, i.a, lanes, UndefinedUse::address);
  const auto& targets = *static_cast<const CallTargets*>(i.data);
  const auto* address = w.at<const std::uint64_t>(i.a);
  Frame* const caller = w.frame;
  const Mask rest = w.active & ~lanes;
  Frame* first = nullptr;
  Mask first_lanes = 0;
  for (Mask left = lanes; left != 0;) {
    const std::uint64_t to = address[std::countr_zero(left)];
    const Mask same = left & mask_of([=](unsigned l) { return address[l] == to; });
    left &= ~same;
    const auto at = std::lower_bound(targets.known.begin(), targets.known.end(), to,
                                     [](const CallTarget& t, std::uint64_t a) { return t.address < a; });
    if (at == targets.known.end() || at->address != to) return refuse_call(i, w, targets, to, same);
    Frame* f = enter(i, w, *at->function, at->passing, same);
    if (f == nullptr) return nullptr;
    if (first == nullptr) {
      first = f, first_lanes = same;
      continue;
    }
    add_fragment(w, f->function->code.data(), f, same);
    --f->fragments;       // this fragment is the frame's first
    ++caller->fragments;  // and the frame has a claim on its caller
  }
  if (rest != 0) add_fragment(w, &i + 1, caller, rest);
  return run_in(w, first, first_lanes);
}

const Inst* give_back(const Inst& i, Warp& w, Mask mask) {
  if (w.frame->caller == nullptr) return leave(i, w, mask);
  const Mask lanes = mask & w.active;
  if (lanes == 0) return &i + 1;
  Frame* from = w.frame;
  Frame* to = from->caller;
  const Slot* s = from->passing + 2 + from->passing[0] * 4;
  for (Slot k = 0; k < from->passing[1]; ++k, s += 4) pass(w, s[1], *to, s[0], s[2], s[3], lanes);
  // A fragment whose turn it is keeps it.
  if (lanes == w.active && (w.forced || w.others.empty())) return return_to_caller(w);
  add_fragment(w, from->call + 1, to, lanes);
  set_active(w, w.active & ~lanes);
  if (w.active != 0) return &i + 1;
  drop_frame(w, from);
  if (from->fragments == 0) --to->fragments;  // the claim that the callee held
  return next_fragment(w);
}

// ---- decoding ----------------------------------------------------------------------------------------------------

Type register_type(unsigned bytes) {
  return bytes == 8 ? Type::b64 : bytes == 4 ? Type::b32 : bytes == 2 ? Type::b16 : Type::none;
}

// One value of a call, as it passes to or from `formal`.
void add_value(Decoder& d, std::vector<Slot>& slots, Slot& count, const Operand& o, const ParamArea& formal,
               bool result) {
  ++count;
  const ParamArea* area = o.kind == Operand::name ? d.area(o.text) : nullptr;
  if (!formal.is_register && o.kind == Operand::number && !result) {
    // A constant, word by word as the area has it.
    for (unsigned word = 0; word < formal.bytes / 4; ++word) {
      const auto bits = word < 2 ? static_cast<std::uint32_t>(o.number_value.bits >> (32 * word)) : 0u;
      slots.insert(slots.end(), {d.constant(&bits, 4), formal.slot + word * 128, 4, 1});
      count += word != 0;
    }
    return;
  }
  if (!formal.is_register) {
    slots.insert(slots.end(), {area_of(d, o, formal.bytes), formal.slot, 4, formal.bytes / 4});
    return;
  }
  const Type type = register_type(formal.bytes);
  if (area != nullptr || type == Type::none)
    d.fail("register parameter '" + formal.name + "' gets no register or constant of its width");
  slots.insert(slots.end(), {result ? d.destination(o, type) : d.source(o, type), formal.slot, formal.bytes, 1});
}

const Slot* passing_to(Decoder& d, const Function& callee, const std::vector<Operand>& arguments,
                       const std::vector<Operand>& results) {
  if (callee.formals.size() != arguments.size() || callee.results.size() != results.size())
    d.fail("wrong number of arguments for '" + callee.name + "'");
  std::vector<Slot> slots(2);
  Slot in = 0, out = 0;
  for (std::size_t k = 0; k < arguments.size(); ++k) add_value(d, slots, in, arguments[k], callee.formals[k], false);
  for (std::size_t k = 0; k < results.size(); ++k) add_value(d, slots, out, results[k], callee.results[k], true);
  slots[0] = in, slots[1] = out;
  return d.keep_slots(std::move(slots));
}

// Every function that the call may go to, in the order of the text.
std::vector<std::string_view> candidates(Decoder& d, const CallForm& form) {
  if (form.listed) return form.names;
  std::vector<std::string_view> names;
  for (const std::size_t k : d.module.address_taken())
    if (const FunctionText& f = d.module.functions[k]; form.prototype.fits(f.signature)) names.push_back(f.name);
  return names;
}

void decode_by_address(Decoder& d, const Operand& target, const CallForm& form, const std::vector<Operand>& arguments,
                       const std::vector<Operand>& results) {
  if (!form.listed &&
      (form.prototype.formals.size() != arguments.size() || form.prototype.results.size() != results.size()))
    d.fail("the call passes another number of values than its prototype has");
  CallTargets& targets = d.function.call_targets.emplace_back();
  targets.listed = form.listed;
  const Slot at = d.source(target, Type::u64);
  std::vector<Function*> callees;
  for (const auto name : candidates(d, form)) {
    Function* f = d.callee(name);
    callees.push_back(f);
    targets.known.push_back({d.code_address(*f), f, passing_to(d, *f, arguments, results)});
  }
  std::sort(targets.known.begin(), targets.known.end(),
            [](const CallTarget& a, const CallTarget& b) { return a.address < b.address; });
  Inst& i = d.emit(call_by_address);
  i.a = at;
  i.data = &targets;
  d.function.calls = true;
  for (Function* f : callees) d.calls_function(*f);
  d.ends_block();
}

void call_decode(Decoder& d) {
  d.accept("uni");
  d.end(1, 4);
  std::size_t at = 0;
  std::vector<Operand> results, arguments;
  if (d.operand(0).kind == Operand::list) results = d.operand(at++).parts;
  if (at >= d.count() || d.operand(at).kind != Operand::name) d.fail("needs a function");
  const Operand target = d.operand(at++);
  if (at < d.count() && d.operand(at).kind == Operand::list) arguments = d.operand(at++).parts;
  const CallForm* form = nullptr;
  if (at < d.count() && d.operand(at).kind == Operand::name) {
    form = d.call_form(d.operand(at).text);
    if (form == nullptr) d.fail("unknown prototype or list of targets '" + std::string(d.operand(at).text) + "'");
    ++at;
  }
  if (at != d.count()) d.fail("bad operands");
  if (d.is_register(target)) {
    if (form == nullptr) d.fail("a call by address needs a prototype or a list of targets");
    return decode_by_address(d, target, *form, arguments, results);
  }
  const auto defined = d.module.by_name.find(target.text);
  const bool own = defined != d.module.by_name.end() && d.module.functions[defined->second].has_body;
  if (!own && decode_system_call(d, target.text, arguments, results)) return;
  Function* callee = d.callee(target.text);
  const Slot* passing = passing_to(d, *callee, arguments, results);
  Inst& i = d.emit(call);
  i.slots = passing;
  i.imm = reinterpret_cast<std::int64_t>(callee);
  d.calls_function(*callee);
  d.ends_block();
}

void ret(Decoder& d) {
  d.accept("uni");
  d.end(0);
  d.emit(give_back);
  d.thread_ends();
  d.ends_block(false);
}

}  // namespace

Slot area_of(Decoder& d, const Operand& o, unsigned bytes) {
  const ParamArea* area = o.kind == Operand::name ? d.area(o.text) : nullptr;
  if (area == nullptr || area->bytes < bytes)
    d.fail("argument '" + std::string(o.text) + "' is no parameter of " + std::to_string(bytes) + " bytes");
  return area->slot;
}

std::span<const Opcode> call_opcodes() {
  static constexpr auto k = InstructionClass::control;
  static const Opcode table[] = {{"call", call_decode, k}, {"ret", ret, k}};
  return table;
}

}  // namespace machine
