// Block barriers (bar, barrier, with arrive and red) and fences.
#include <algorithm>
#include <array>

#include "exec/call_stack.hpp"
#include "exec/fault.hpp"
#include "exec/fragments.hpp"
#include "exec/lanes.hpp"
#include "exec/memory_access.hpp"
#include "isa/bulk_decode.hpp"
#include "isa/families.hpp"

namespace machine {
namespace {

enum class Reduce : std::uint8_t { none, popc, and_, or_ };

// extra: use in bits 0-1 (BarrierUse), reduction in bits 2-3, aligned bit 4, counted bit 5, flip of the predicate bit 6
BarrierUse use_of(const Inst& i) { return static_cast<BarrierUse>(i.extra & 3); }
Reduce reduce_of(const Inst& i) { return static_cast<Reduce>(i.extra >> 2 & 3); }
bool aligned(const Inst& i) { return i.extra >> 4 & 1; }
bool counted(const Inst& i) { return i.extra >> 5 & 1; }

// Counts the lanes in; the fragment waits or goes on as the instruction says. Does not complete the barrier.
void arrive(const Inst& i, Warp& w, Mask lanes, const Frame& frame) {
  Block& block = *w.block;
  const unsigned first = static_cast<unsigned>(std::countr_zero(lanes));
  auto value = [&](Slot s) { return at_frame<std::uint32_t>(w, frame, s)[first]; };
  const std::uint32_t number = value(i.a), id = number & 15;
  if (number > 15)
    report_fault(i, w, lanes, Fault::barrier_number, "barrier number " + std::to_string(number) + ", at most 15");
  const std::uint32_t expected = counted(i) ? value(i.b) : 0;
  BarrierState& b = block.barriers[id];
  if (counted(i)) {
    const std::uint32_t room = (block.info.threads + kWarp - 1) / kWarp * kWarp;
    if (expected == 0 || expected % kWarp != 0 || expected > room)
      report_fault(
          i, w, lanes, Fault::barrier_count,
          "a count of " + std::to_string(expected) + " threads in a block of " + std::to_string(block.info.threads));
  }
  if (b.in_use && b.expected != expected) {
    // Which of the two is wrong cannot be known: both are reported.
    const std::string detail = "counts of " + std::to_string(b.expected) + " and " + std::to_string(expected) +
                               " threads at one barrier (0: all)";
    report_fault(i, w, lanes, Fault::barrier_count, detail);
    if (w.observer != nullptr) {
      FaultEvent e;
      e.fault = Fault::barrier_count;
      e.lanes = b.first.active;
      e.detail = detail;
      w.observer->fault(b.first, e);
    }
  }
  const auto kind = static_cast<std::uint8_t>(reduce_of(i));
  if (b.in_use && use_of(i) != BarrierUse::arrive && b.use != 0xff && b.use != kind)
    report_fault(i, w, lanes, Fault::barrier_mixed, "different operations at one barrier");
  if (!b.in_use) {
    b = BarrierState{};
    b.in_use = true;
    b.expected = expected;
    b.use = 0xff;
    b.first = w.point(i, lanes);
  }
  if (use_of(i) != BarrierUse::arrive) b.use = kind;
  if (w.observer != nullptr) {
    WarpPoint p = w.point(i, lanes);
    w.observer->barrier_arrive(p,
                               {id, use_of(i), expected != 0 ? expected : block.alive_threads, counted(i), aligned(i)});
  }
  b.arrived[w.index] |= lanes;
  if (use_of(i) != BarrierUse::arrive) b.waited[w.index] |= lanes;
  // A warp counts with all its lanes once those alive have come; lanes that exited count for a barrier with a count.
  b.count += static_cast<std::uint32_t>(std::popcount(lanes));
  if (expected != 0 && (w.alive & ~b.arrived[w.index]) == 0)
    b.count += static_cast<std::uint32_t>(std::popcount(~w.alive));
  if (reduce_of(i) != Reduce::none) {
    Mask p = *at_frame<Mask>(w, frame, i.c);
    if (i.extra >> 6 & 1) p = ~p;
    b.reduced_count += static_cast<std::uint32_t>(std::popcount(p & lanes));
    b.reduced_and = b.reduced_and && (p & lanes) == lanes;
    b.reduced_or = b.reduced_or || (p & lanes) != 0;
  }
}

// The same functions through the same calls.
bool called_alike(const Frame* a, const Frame* b) {
  for (; a != b; a = a->caller, b = b->caller)
    if (a == nullptr || b == nullptr || a->function != b->function || a->call != b->call) return false;
  return true;
}

void release(Block& block, Worker& k, std::uint32_t id) {
  BarrierState& b = block.barriers[id];
  if (block.passed && b.expected == 0) {
    report_passed(block, id);
    settle_passed(block);
  }
  if (k.observer != nullptr)
    k.observer->barrier_release(block.info,
                                {id, {b.arrived.data(), block.warp_count}, {b.waited.data(), block.warp_count}});
  for (std::uint32_t n = 0; n < block.warp_count; ++n) {
    Warp& w = *block.warps[n];
    for (auto& f : w.others) {
      if (f.wait != Stop::barrier || f.barrier != id) continue;
      const Inst& i = *f.pc;
      std::byte* registers = f.frame->registers;
      switch (reduce_of(i)) {
        case Reduce::none: break;
        case Reduce::popc:
          for_lanes(f.lanes, [&](unsigned l) {
            reinterpret_cast<std::uint32_t*>(registers + (i.d & ~Slot{3}))[l] = b.reduced_count;
          });
          break;
        default: {
          Mask& p = *reinterpret_cast<Mask*>(registers + (i.d & ~Slot{3}));
          const bool v = reduce_of(i) == Reduce::and_ ? b.reduced_and : b.reduced_or;
          p = v ? p | f.lanes : p & ~f.lanes;
        }
      }
      f.wait = Stop::paused;
      f.pc = &i + 1;
    }
  }
  b.in_use = false;
  b.count = 0;
}

const Inst* barrier(const Inst& i, Warp& w, Mask mask) {
  Mask lanes = mask & w.active;
  if (i.imm != 0 && lanes != w.active) pass_by(w, i, w.active & ~lanes);
  if (lanes == 0) return &i + 1;
  // Fragments that came before to this very instruction go with this one.
  for (std::size_t k = 0; k < w.others.size();) {
    const Fragment& f = w.others[k];
    if (f.wait == Stop::gathering && f.pc == &i && f.frame == w.frame) {
      lanes |= f.lanes;
      set_active(w, w.active | f.lanes);
      drop_frame(w, f.frame);
      w.others.erase(w.others.begin() + static_cast<std::ptrdiff_t>(k));
    } else {
      ++k;
    }
  }
  if (lanes != w.active) {  // guarded off lanes go on
    add_fragment(w, &i + 1, w.frame, w.active & ~lanes);
    set_active(w, lanes);
  }
  if (aligned(i) && lanes != w.alive) return stopped(w, Stop::gathering, &i);
  arrive(i, w, lanes, *w.frame);
  if (use_of(i) == BarrierUse::arrive) {
    check_barriers(*w.block, *w.worker);
    return &i + 1;
  }
  w.barrier = w.at<const std::uint32_t>(i.a)[std::countr_zero(lanes)] & 15;
  w.others.push_back({&i, w.frame, lanes, Stop::barrier, 0, w.barrier, ++w.turns, false});
  w.active = 0;
  w.diverged = true;
  check_barriers(*w.block, *w.worker);
  return next_fragment(w);
}

const Inst* fence(const Inst& i, Warp& w, Mask mask) {
  const Mask lanes = mask & w.active;
  if (lanes == 0) return &i + 1;
  if (w.observer != nullptr)
    w.observer->fence(w.point(i, lanes), static_cast<FenceKind>(i.extra & 1), static_cast<Scope>(i.extra >> 1));
  talked(w);
  return &i + 1;
}

// ---- decoding ----------------------------------------------------------------------------------------------------

void barrier_decode(Decoder& d, bool bar) {
  d.accept("cta");
  if (d.accept("cluster")) d.fail("clusters are not supported");
  if (!bar && d.accept("warp")) d.fail("unknown form");
  std::uint32_t extra = 0;
  const int kind = d.accept_one({"sync", "arrive", "red"});
  if (kind < 0) d.fail("needs .sync, .arrive or .red");
  extra |= kind == 0   ? 0u
           : kind == 1 ? static_cast<std::uint32_t>(BarrierUse::arrive)
                       : static_cast<std::uint32_t>(BarrierUse::reduce);
  if (bar || d.accept("aligned")) extra |= 1u << 4;
  std::size_t at = 0;
  Slot result = 0, predicate = 0;
  if (kind == 2) {
    const int op = d.accept_one({"popc", "and", "or"});
    if (op < 0) d.fail("needs .popc, .and or .or");
    d.type({op == 0 ? Type::u32 : Type::pred});
    extra |= static_cast<std::uint32_t>(op + 1) << 2;
    d.end(3, 4);
    result = op == 0 ? d.destination(0, Type::u32) : d.predicate_destination(d.operand(0));
    Operand p = d.operand(d.count() - 1);
    if (p.negated) extra |= 1u << 6;
    p.negated = false;
    predicate = d.predicate_source(p);
    at = 1;
  } else {
    d.end(kind == 1 ? 2 : 1, 2);
  }
  const bool has_count = d.count() == at + (kind == 2 ? 3 : 2);
  if (has_count) extra |= 1u << 5;
  if (d.is_immediate(at) && d.immediate(at) > 15) d.fail("barrier number above 15");
  const Slot id = d.source(at, Type::u32), count = has_count ? d.source(at + 1, Type::u32) : 0;
  Inst& i = d.emit(barrier);
  i.a = id, i.b = count, i.c = predicate, i.d = result, i.extra = extra;
  if (!has_count) d.waits_for_block();
  d.ends_block();
}

void bar(Decoder& d) {
  if (d.accept("warp")) return decode_syncwarp(d);
  barrier_decode(d, true);
}

void emit_fence(Decoder& d, FenceKind kind, Scope scope) {
  if (scope == Scope::gpu || scope == Scope::sys) d.program.communicates = true;
  d.end(0);
  d.emit(fence).extra = static_cast<std::uint32_t>(kind) | static_cast<std::uint32_t>(scope) << 1;
  d.ends_block();
}
void membar(Decoder& d) {
  const int level = d.accept_one({"cta", "gl", "sys"});
  if (level < 0) d.fail("needs .cta, .gl or .sys");
  emit_fence(d, FenceKind::sc, level == 0 ? Scope::cta : level == 1 ? Scope::gpu : Scope::sys);
}
// fence.proxy.async orders accesses of the generic and of the async proxy. Aliases and tensor maps are seen by all at
// once here.
void proxy_fence_decode(Decoder& d) {
  if (d.accept("tensormap::generic")) return decode_tensor_map_fence(d);
  refuse_later_forms(d, {"async::generic", "fabric::fabric", "fabric::generic", "generic::fabric"});
  const bool async = d.accept("async") || d.accept("async.global");
  if (!async && !d.accept("alias")) d.fail("this proxy is not supported");
  if (async) d.accept_one({"global", "shared::cta", "shared::cluster"});
  if (!async) d.accept_one({"acquire", "release"}), d.accept("sys");
  d.end(0);
  if (!async) {
    d.emit([](const Inst& i, Warp&, Mask) -> const Inst* { return &i + 1; });
    return;
  }
  d.emit([](const Inst& i, Warp& w, Mask mask) -> const Inst* {
    const Mask lanes = mask & w.active;
    if (lanes != 0 && w.observer != nullptr) w.observer->proxy_fence(w.point(i, lanes));
    return &i + 1;
  });
  d.ends_block();
}
void fence_decode(Decoder& d) {
  if (d.accept("mbarrier_init")) {
    if (!d.accept("release") || !d.accept("cluster")) d.fail("needs .release.cluster");
    return emit_fence(d, FenceKind::acq_rel, Scope::cluster);
  }
  if (d.accept("proxy")) return proxy_fence_decode(d);
  const int kind = d.accept_one({"sc", "acq_rel", "acquire", "release"});
  // Of one side's accesses to shared memory only: no weaker here than of all.
  d.accept_one({"sync_restrict::shared::cta", "sync_restrict::shared::cluster"});
  const int scope = d.accept_one({"cta", "cluster", "gpu", "sys"});
  if (scope < 0) d.fail("needs a scope");
  static constexpr Scope kScopes[] = {Scope::cta, Scope::cluster, Scope::gpu, Scope::sys};
  emit_fence(d, kind == 0 ? FenceKind::sc : FenceKind::acq_rel, kScopes[scope]);
}

}  // namespace

void check_barriers(Block& block, Worker& k) {
  for (std::uint32_t id = 0; id < 16; ++id) {
    BarrierState& b = block.barriers[id];
    if (!b.in_use) continue;
    const std::uint32_t expected = b.expected != 0 ? b.expected : block.alive_threads;
    if (b.count >= expected) release(block, k, id);
  }
}

void settle_gathering(Warp& w) {
  // Lanes that came to one call in several steps have a frame each, and are in the same place all the same.
  std::array<Mask, kWarp> together{};
  for (const auto& f : w.others)
    for (const auto& g : w.others)
      if (f.wait == Stop::gathering && g.wait == Stop::gathering && f.pc == g.pc && called_alike(f.frame, g.frame))
        together[static_cast<unsigned>(std::countr_zero(f.lanes))] |= g.lanes;
  bool any = false;
  for (auto& f : w.others) {
    if (f.wait != Stop::gathering) continue;
    const Inst& i = *f.pc;
    if (together[static_cast<unsigned>(std::countr_zero(f.lanes))] != w.alive)
      report_fault(i, w, f.lanes, Fault::divergent_barrier, "part of the warp is here, the rest elsewhere");
    arrive(i, w, f.lanes, *f.frame);
    any = true;
    if (use_of(i) == BarrierUse::arrive) {
      f.wait = Stop::paused;
      f.pc = &i + 1;
    } else {
      f.wait = Stop::barrier;
      f.barrier = at_frame<std::uint32_t>(w, *f.frame, i.a)[std::countr_zero(f.lanes)] & 15;
    }
  }
  if (any) check_barriers(*w.block, *w.worker);
}

std::span<const Opcode> barrier_opcodes() {
  static const Opcode table[] = {
      {"bar", bar, InstructionClass::barrier},
      {"barrier", [](Decoder& d) { barrier_decode(d, false); }, InstructionClass::barrier},
      {"membar", membar, InstructionClass::fence},
      {"fence", fence_decode, InstructionClass::fence},
  };
  return table;
}

}  // namespace machine
