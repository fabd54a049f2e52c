// Fragments of a warp: who runs, who waits, where they meet again.
#include "exec/fragments.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "exec/bulk.hpp"
#include "exec/call_stack.hpp"
#include "exec/lanes.hpp"
#include "exec/undefined.hpp"

namespace machine {
namespace {

bool can_run(const Fragment& f) { return f.wait == Stop::paused || f.wait == Stop::yielded; }

// Deeper calls first, then the lower program counter.
bool behind(const Inst* pc, const Frame* frame, const Inst* other_pc, const Frame* other_frame) {
  if (frame->depth != other_frame->depth) return frame->depth > other_frame->depth;
  return pc->pc < other_pc->pc;
}

const Inst* resume(Warp& w, std::size_t index) {
  const Fragment f = w.others[index];
  w.others.erase(w.others.begin() + static_cast<std::ptrdiff_t>(index));
  use_frame(w, f.frame);
  set_active(w, f.lanes);
  w.released = f.released;
  w.in_vain = false;
  w.diverged = !w.others.empty();
  if (w.diverged) w.budget = std::min(w.budget, w.fragment_turn);
  return f.pc;
}

std::size_t lowest(const Warp& w) {
  std::size_t best = w.others.size();
  for (std::size_t k = 0; k < w.others.size(); ++k) {
    if (!can_run(w.others[k])) continue;
    if (best == w.others.size() || behind(w.others[k].pc, w.others[k].frame, w.others[best].pc, w.others[best].frame))
      best = k;
  }
  return best;
}

std::size_t oldest(const Warp& w) {
  std::size_t best = w.others.size();
  for (std::size_t k = 0; k < w.others.size(); ++k)
    if (can_run(w.others[k]) && (best == w.others.size() || w.others[k].turn < w.others[best].turn)) best = k;
  return best;
}

void count(const Inst& i, Warp& w) {
  const auto& block = *static_cast<const BasicBlock*>(i.data);
  Worker& k = *w.worker;
  BlockCount& c = k.counts[i.extra];
  ++c.warps;
  c.lanes += static_cast<unsigned>(std::popcount(w.active));
  k.executed += block.length;
  w.budget -= block.length;
}

}  // namespace

Warp::Warp() = default;
Warp::~Warp() = default;

WarpPoint Warp::point(const Inst& i, Mask mask) const {
  WarpPoint p;
  p.block = &block->info;
  p.warp = index;
  p.pc = i.pc;
  p.active = mask;
  p.alive = alive;
  p.frame = frame;
  return p;
}

void set_active(Warp& w, Mask lanes) {
  w.active = lanes;
  w.lanes = lanes | ~w.alive;
}

const Inst* enter_block(const Inst& i, Warp& w, Mask) {
  if (w.diverged || w.budget <= 0) [[unlikely]] {
    const Inst* at = reconverge(i, w);
    if (at != &i) return at;
  }
  count(i, w);
  return &i + 1;
}

const Inst* reconverge(const Inst& i, Warp& w) {
  for (std::size_t k = 0; k < w.others.size();) {
    const Fragment& f = w.others[k];
    if (can_run(f) && f.pc == &i && f.frame == w.frame) {
      set_active(w, w.active | f.lanes);
      drop_frame(w, f.frame);
      w.others.erase(w.others.begin() + static_cast<std::ptrdiff_t>(k));
    } else {
      ++k;
    }
  }
  w.diverged = !w.others.empty();
  if (w.budget <= 0) return stopped(w, Stop::paused, &i);
  if (!w.diverged) w.forced = false;
  // Lanes that spin would starve those at a higher counter, which may hold what they spin on.
  const bool in_vain = std::exchange(w.in_vain, false);
  if (w.diverged && (in_vain || !w.forced)) {
    const std::size_t k = in_vain ? oldest(w) : lowest(w);
    if (k < w.others.size() && (in_vain || behind(w.others[k].pc, w.others[k].frame, &i, w.frame))) {
      if (in_vain) w.forced = true, ++w.turns;
      Fragment self{&i, w.frame, w.active, Stop::paused, 0, 0, w.turns, false};
      const Inst* pc = resume(w, k);
      w.others.push_back(self);
      w.diverged = true;
      return pc;
    }
  }
  return &i;
}

const Inst* stopped(Warp& w, Stop why, const Inst* resume_at) {
  w.others.push_back({resume_at, w.frame, w.active, why, w.need, w.barrier, ++w.turns, false});
  w.active = 0;
  w.diverged = true;
  if (why == Stop::paused || why == Stop::yielded || why == Stop::aborted) {
    w.stop = why;
    return nullptr;
  }
  const Inst* next = next_fragment(w);
  if (next == nullptr) w.stop = why;
  return next;
}

const Inst* next_fragment(Warp& w) {
  const std::size_t k = lowest(w);
  if (k < w.others.size()) return resume(w, k);
  w.active = 0;
  w.stop = w.alive == 0 ? Stop::exited : Stop::barrier;
  return nullptr;
}

void add_fragment(Warp& w, const Inst* pc, Frame* frame, Mask lanes) {
  w.others.push_back({pc, frame, lanes, Stop::paused, 0, 0, w.turns, false});
  ++frame->fragments;
  w.diverged = true;
  w.budget = std::min(w.budget, w.fragment_turn);
}

const Inst* return_to_caller(Warp& w) {
  Frame* const from = w.frame;
  const Inst* const next = from->call + 1;
  Frame* const to = from->caller;
  drop_frame(w, from);
  if (from->fragments != 0) ++to->fragments;  // those that are still in the callee keep its claim on the caller
  use_frame(w, to);
  return next;
}

void exit_lanes(Warp& w, const Inst& i, Mask lanes) {
  if (w.observer != nullptr) w.observer->threads_exit(w.point(i, lanes));
  // Copies that nobody waited for land now, for the lanes that go.
  if (!w.copies.empty() && (w.alive & ~lanes) == 0) land_all(w, i, false);
  if (w.block->bulk) finish_bulk(w, i, lanes);
  w.alive &= ~lanes;
  set_active(w, w.active & ~lanes);
  w.block->alive_threads -= static_cast<std::uint32_t>(std::popcount(lanes));
  wake_collectives(w);
  check_barriers(*w.block, *w.worker);
}

void wake_collectives(Warp& w) {
  for (auto& f : w.others)
    if (f.wait == Stop::collective) f.wait = Stop::paused;
}

void start_warp(Warp& w, const Function& entry) {
  w.others.clear();
  w.free_frames.clear();
  // The kernel's frame is the same in every block.
  for (auto f = w.frames.rbegin(); f != w.frames.rend(); ++f) w.free_frames.push_back(f->get());
  for (auto& f : w.frames) f->fragments = 0;
  w.follows = false;
  w.follow_from = nullptr;
  w.turns = 0;
  w.stop = Stop::none;
  for (auto& c : w.copies) w.free_copies.push_back(std::move(c));
  w.copies.clear();
  w.groups.fill(0);
  w.passed.clear();
  if (w.met_in_part != 0) *w.part_meetings = {}, w.met_in_part = 0;
  w.released = false;
  w.carry = 0;
  w.forced = false;
  w.polled = w.in_vain = false;
  w.polled_at = w.watch = 0;
  Frame* f = push_frame(w, entry, nullptr, nullptr, nullptr, 0);
  w.others.push_back({entry.code.data(), f, w.alive, Stop::paused, 0, 0, 0, false});
  w.active = 0;
}

bool runnable(const Warp& w) {
  for (const auto& f : w.others)
    if (can_run(f)) return true;
  return false;
}

void run_warp(Warp& w, std::int64_t budget) {
  const bool by_age = w.stop == Stop::paused || w.stop == Stop::yielded;
  const std::size_t k = by_age ? oldest(w) : lowest(w);
  if (k >= w.others.size()) return;
  w.stop = Stop::none;
  w.budget = budget;
  w.fragment_turn = w.worker->turns.fragment();
  w.forced = by_age;
  const Inst* pc = resume(w, k);
  for (;;) {
    if (w.follows) [[unlikely]]
      pc = run_following(w, pc);
    while (pc != nullptr) pc = pc->fn(*pc, w, w.lanes & (w.predicate(pc->guard) ^ pc->flip));
    if (w.follow_from == nullptr) [[likely]]
      return;
    pc = std::exchange(w.follow_from, nullptr);
  }
}

void abort_launch(Warp& w, const Inst& i, LaunchStatus status, const std::string& what, Mask lanes) {
  Worker& k = *w.worker;
  w.stop = Stop::aborted;
  if (k.status != LaunchStatus::ok) return;
  k.status = status;
  const auto& info = w.block->info;
  const Location location = k.request->kernel->location(i.pc);
  std::string where = location.lines.empty()
                          ? "PTX line " + std::to_string(location.ptx_line)
                          : location.lines.front().file + ":" + std::to_string(location.lines.front().line);
  std::string text = k.request->kernel->name() + ", " + where + ": " + what;
  if (lanes != 0) {
    const std::uint32_t thread = w.index * kWarp + static_cast<unsigned>(std::countr_zero(lanes));
    const Dim3& b = k.request->block;
    text += ", block (" + std::to_string(info.id.x) + "," + std::to_string(info.id.y) + "," +
            std::to_string(info.id.z) + "), thread (" + std::to_string(thread % b.x) + "," +
            std::to_string(thread / b.x % b.y) + "," + std::to_string(thread / b.x / b.y) + ")";
  }
  k.message = std::move(text);
}

}  // namespace machine
