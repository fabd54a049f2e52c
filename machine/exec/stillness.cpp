#include "exec/stillness.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "exec/fragments.hpp"

namespace machine {
namespace {

// Rounds without a change before warps are looked at: looking costs as much as a short turn.
constexpr std::uint64_t kQuietRounds = 4;
// What a grid may poll without an end in sight, in windows of so many warp instructions: several longest turns of each
// resident block, and at least so much that a wait with a time limit or a bounded number of tries comes to its end
// before.
constexpr unsigned kWindows = 16;
constexpr std::uint64_t kLeastWindow = 1'250'000;
// An hour and some, also for who looks at the lower half of the clock only.
constexpr std::uint64_t kLeap = 838ull << 32 | 0x7000'0000;
// A warp with much local memory is looked at less often.
constexpr std::uint64_t kBytesALook = 64 << 10;

std::uint64_t mix(std::uint64_t h, std::uint64_t v) { return std::rotl((h ^ v) * 0x9e3779b97f4a7c15u, 29); }

std::uint64_t mix_bytes(std::uint64_t h, const std::byte* bytes, std::uint64_t count) {
  for (; count >= 8; bytes += 8, count -= 8) {
    std::uint64_t v;
    std::memcpy(&v, bytes, 8);
    h = mix(h, v);
  }
  return h;
}

// The registers of a frame, but for those that a clock decides.
std::uint64_t mix_registers(std::uint64_t h, const Frame& frame) {
  std::uint32_t at = 0;
  for (const auto& [begin, bytes] : frame.function->times) {
    if (begin > at) h = mix_bytes(h, frame.registers + at, begin - at);
    at = std::max(at, begin + bytes);
  }
  return mix_bytes(h, frame.registers + at, frame.function->frame_bytes - at);
}

bool clock_decides(const Warp& w) {
  for (const Fragment& f : w.others)
    for (const Frame* frame = f.frame; frame != nullptr; frame = frame->caller)
      if (!frame->function->times.empty()) return true;
  return false;
}

// All that the warp's next steps depend on, but for memory that others see. Who ran last is part of it: the fragments
// take turns.
std::uint64_t likeness_of(const Warp& w) {
  std::uint64_t h = w.alive;
  std::vector<const Fragment*> by_age;
  for (const Fragment& f : w.others) by_age.push_back(&f);
  std::sort(by_age.begin(), by_age.end(), [](const Fragment* a, const Fragment* b) { return a->turn < b->turn; });
  for (const Fragment* f : by_age) {
    h = mix(mix(h, reinterpret_cast<std::uint64_t>(f->pc)),
            std::uint64_t{f->lanes} << 32 | static_cast<std::uint64_t>(f->wait));
    for (const Frame* frame = f->frame; frame != nullptr; frame = frame->caller) h = mix_registers(h, *frame);
  }
  return w.local == nullptr ? h : mix_bytes(h, w.local, std::uint64_t{w.local_bytes} * kWarp);
}

template <class F>
bool every_runnable(std::span<Block* const> resident, F holds) {
  for (const Block* b : resident)
    for (std::uint32_t n = 0; n < b->warp_count; ++n)
      if (Warp& w = *b->warps[n]; !holds(w) && runnable(w)) return false;
  return true;
}

}  // namespace

void look_at(Warp& w) {
  const std::uint64_t watch = w.worker->watch;
  if (w.watch != watch) {
    w.watch = watch;
    w.samples = 0;
    w.recurs = w.awaits_leap = false;
  }
  if (w.recurs) return;
  const std::uint64_t number = w.samples++;
  const std::uint64_t every = 1 + std::uint64_t{w.local_bytes} * kWarp / kBytesALook;
  if (number % every != 0) return;
  const std::uint64_t now = likeness_of(w);
  // What later looks are compared with is renewed at ever longer intervals: a loop is longer than one look, and may
  // have a beginning.
  if (number != 0 && now == w.likeness) {
    w.recurs = w.likeness_leap != w.worker->leaps || !clock_decides(w);
    w.awaits_leap = !w.recurs;
  } else if (std::has_single_bit(number / every + 1)) {
    w.likeness = now;
    w.likeness_leap = w.worker->leaps;
    w.awaits_leap = false;
  }
}

void Stillness::restart(Worker& k) {
  rounds_ = 0;
  windows_ = 0;
  k.watch = 0;
  k.host_polled = false;
  changes_ = k.memory_changes;
}

bool Stillness::reached(Worker& k, std::span<Block* const> resident, bool moved) {
  if (moved || k.memory_changes != changes_) {
    restart(k);
    return false;
  }
  if (++rounds_ < kQuietRounds) return false;
  if (k.watch == 0) {
    k.watch = ++stretches_;
    window_ = k.executed;
    every_runnable(resident, [](Warp& w) { return w.polled = false, true; });
    return false;
  }
  if (every_runnable(resident, [&](const Warp& w) { return w.recurs && w.watch == k.watch; })) return true;
  // Not where the host may answer: its time is another.
  if (!k.host_polled &&
      every_runnable(resident, [&](const Warp& w) { return (w.recurs || w.awaits_leap) && w.watch == k.watch; })) {
    k.clock += kLeap;
    ++k.leaps;
    every_runnable(resident, [](Warp& w) { return w.awaits_leap = false, true; });
  }
  const std::uint64_t window = std::max(kLeastWindow, k.options->quantum * std::max<std::uint64_t>(resident.size(), 1));
  if (k.executed - window_ < window) return false;
  window_ = k.executed;
  windows_ = every_runnable(resident, [](const Warp& w) { return w.polled; }) ? windows_ + 1 : 0;
  every_runnable(resident, [](Warp& w) { return w.polled = false, true; });
  return windows_ >= kWindows;
}

}  // namespace machine
