#include "exec/call_stack.hpp"

#include "exec/fault.hpp"

#include <algorithm>
#include <cstring>

#include "exec/lanes.hpp"
#include "exec/undefined.hpp"

namespace machine {
namespace {

class Deepest {
 public:
  explicit Deepest(const std::deque<Function>& functions)
      : needs_(functions.size()), seen_(functions.size(), Seen::no) {}

  StackNeed of(const Function& f) {
    StackNeed& need = needs_[f.number];
    if (seen_[f.number] == Seen::open)
      grows_ = true;  // a call of itself: what one round needs is counted where it began
    if (seen_[f.number] != Seen::no) return need;
    seen_[f.number] = Seen::open;
    StackNeed deepest;
    for (const Function* callee : f.callees) {
      const StackNeed below = of(*callee);
      deepest.space = std::max(deepest.space, below.space);
      deepest.charge = std::max(deepest.charge, below.charge);
    }
    need.space = deepest.space + stack_space(f);
    need.charge = deepest.charge + stack_charge(f);
    grows_ = grows_ || f.grows_stack;
    seen_[f.number] = Seen::done;
    return need;
  }
  bool grows() const { return grows_; }

 private:
  enum class Seen : std::uint8_t { no, open, done };
  std::vector<StackNeed> needs_;
  std::vector<Seen> seen_;
  bool grows_ = false;
};

std::uint32_t highest(const std::array<std::uint32_t, kWarp>& of, Mask lanes) {
  std::uint32_t most = 0;
  for_lanes(lanes, [&](unsigned l) { most = std::max(most, of[l]); });
  return most;
}

std::uint32_t end_of(const Frame& f, Mask lanes) {
  return f.grown ? (highest(f.grown->top, lanes) + 31) / 32 * 32 : f.base + stack_space(*f.function);
}
std::uint32_t charge_of(const Frame& f, Mask lanes) {
  return f.charge + (f.grown ? highest(f.grown->taken, lanes) : 0);
}

}  // namespace

StackNeed stack_need(const std::deque<Function>& functions) {
  Deepest deepest(functions);
  StackNeed need = deepest.of(functions.front());
  need.grows = deepest.grows();
  return need;
}

Frame* push_frame(Warp& w, const Function& function, Frame* caller, const Inst* call, const Slot* passing, Mask lanes) {
  if (w.free_frames.empty()) {
    w.frames.push_back(std::make_unique<Frame>());
    w.free_frames.push_back(w.frames.back().get());
  }
  Frame* f = w.free_frames.back();
  w.free_frames.pop_back();
  if (f->room.size() < function.frame_bytes) {
    w.register_bytes += function.frame_bytes - f->room.size();
    f->room.resize(function.frame_bytes);
  }
  f->registers = f->room.data();
  std::memset(f->registers, 0, function.frame_bytes);
  if (f->undefined) [[unlikely]] {
    f->undefined->clear();
    f->undefined->index.resize(function.frame_bytes / 4);
  }
  f->function = &function;
  f->caller = caller;
  f->call = call;
  f->passing = passing;
  f->depth = caller != nullptr ? caller->depth + 1 : 0;
  f->layout = &function.local;
  f->below = caller;
  f->grown.reset();
  f->base = caller != nullptr ? end_of(*caller, lanes) : 0;
  f->charge = stack_charge(function) + (caller != nullptr ? charge_of(*caller, lanes) : 0);
  f->fragments = 1;
  return f;
}

void drop_frame(Warp& w, Frame* frame, std::uint32_t fragments) {
  frame->fragments -= fragments;
  if (frame->fragments == 0) w.free_frames.push_back(frame);
}

bool fits_stack(const Warp& w, const Function& function, const Frame& caller, Mask lanes) {
  if (!w.worker->program->stack.grows) return true;
  return std::uint64_t{end_of(caller, lanes)} + stack_space(function) <= w.local_bytes &&
         charge_of(caller, lanes) + stack_charge(function) <= w.worker->stack_limit;
}

const Inst* overflow_stack(const Inst& i, Warp& w, Mask lanes) {
  const std::string what = "the stack of a thread is exhausted, " + std::to_string(w.frame->depth) +
                           " calls deep: cudaLimitStackSize is " + std::to_string(w.worker->request->stack_bytes) +
                           " bytes";
  return end_with_fault(i, w, lanes, Fault::stack_overflow, LaunchStatus::stack_overflow, what);
}

}  // namespace machine
