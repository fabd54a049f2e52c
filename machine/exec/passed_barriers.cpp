// Threads that pass barriers of their block by: who did, how often, and who waits there meanwhile.
//
// Whether a thread missed a barrier, or left for good where all had gone past it, shows in how often each has gone past
// since the last barrier of the block: a thread that waits there has come one time less than one that missed it. So a
// round that all leave out, or a loop that all have left, makes no later return a fault.
#include <algorithm>

#include "exec/fragments.hpp"
#include "exec/lanes.hpp"

namespace machine {
namespace {

using Times = std::array<std::uint32_t, kWarp>;
constexpr Times kNone{};

const Times& times_past(const Warp& w, const Inst* at) {
  for (const PassedBy& p : w.passed)
    if (p.at == at) return p.times;
  return kNone;
}

std::uint32_t least(const Times& times, Mask lanes) {
  std::uint32_t found = ~std::uint32_t{0};
  for_lanes(lanes, [&](unsigned l) { found = std::min(found, times[l]); });
  return found;
}

// Whether the fragment waits at a barrier of the region, or in a function that was called there.
bool waits_in(const BarrierRegion& region, const Fragment& f) {
  const auto& barriers = region.barriers;
  const Inst* at = f.pc;
  for (const Frame* frame = f.frame; frame != nullptr; at = frame->call, frame = frame->caller)
    if (std::binary_search(barriers.begin(), barriers.end(), at->pc)) return true;
  return false;
}

}  // namespace

void pass_by(Warp& w, const Inst& i, Mask lanes) {
  if (w.observer == nullptr) return;
  w.block->passed = true;
  auto found = std::find_if(w.passed.begin(), w.passed.end(), [&](const PassedBy& p) { return p.at == &i; });
  if (found == w.passed.end()) found = w.passed.insert(found, {&i, {}});
  for (unsigned l = 0; l < kWarp; ++l) found->times[l] += lanes >> l & 1;
}

void report_passed(Block& block, std::uint32_t id) {
  for (std::uint32_t n = 0; n < block.warp_count; ++n) {
    Warp& waiting = *block.warps[n];
    for (const Fragment& here : waiting.others) {
      if (here.wait != Stop::barrier || here.barrier != id) continue;
      for (std::uint32_t m = 0; m < block.warp_count; ++m) {
        Warp& other = *block.warps[m];
        Mask elsewhere = ~other.alive;
        for (const Fragment& f : other.others)
          if (f.wait == Stop::barrier && f.pc != here.pc) elsewhere |= f.lanes;
        for (const PassedBy& p : other.passed) {
          if (!waits_in(region_at(*p.at), here)) continue;
          const std::uint32_t alike = least(times_past(waiting, p.at), here.lanes);
          Mask missed = 0;
          for_lanes(elsewhere, [&](unsigned l) { missed |= Mask{p.times[l] > alike} << l; });
          if (missed == 0) continue;
          const WarpPoint past = other.point(*p.at, missed);
          FaultEvent e;
          e.fault = Fault::passed_barrier;
          e.lanes = here.lanes;
          e.detail =
              "threads wait here that others of the block have passed by: those have ended, or wait at another barrier";
          e.other = &past;
          waiting.observer->fault(waiting.point(*here.pc, here.lanes), e);
        }
      }
    }
  }
}

void settle_passed(Block& block) {
  // How often those that go on have gone past; it no longer counts, for them or for those that had ended before.
  std::vector<PassedBy> all;
  for (std::uint32_t n = 0; n < block.warp_count; ++n) {
    const Warp& w = *block.warps[n];
    for (const PassedBy& p : w.passed) {
      std::uint32_t most = 0;
      for_lanes(w.alive, [&](unsigned l) { most = std::max(most, p.times[l]); });
      auto found = std::find_if(all.begin(), all.end(), [&](const PassedBy& q) { return q.at == p.at; });
      if (found == all.end()) found = all.insert(found, {p.at, {}});
      found->times[0] = std::max(found->times[0], most);
    }
  }
  block.passed = false;
  for (std::uint32_t n = 0; n < block.warp_count; ++n) {
    Warp& w = *block.warps[n];
    std::erase_if(w.passed, [&](PassedBy& p) {
      const auto same = std::find_if(all.begin(), all.end(), [&](const PassedBy& q) { return q.at == p.at; });
      for_lanes(w.alive, [&](unsigned l) { p.times[l] = 0; });
      for (auto& t : p.times) t -= std::min(t, same->times[0]);
      return p.times == kNone;
    });
    block.passed = block.passed || !w.passed.empty();
  }
}

}  // namespace machine
