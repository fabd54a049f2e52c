// mbarrier objects in shared memory: what each operation does to the lanes' objects.
#include "isa/mbarrier_run.hpp"

#include <algorithm>
#include <cstring>

#include "exec/bulk.hpp"
#include "exec/fragments.hpp"
#include "exec/mbarrier.hpp"
#include "exec/memory_access.hpp"

namespace machine {
namespace {

using u32 = std::uint32_t;
using u64 = std::uint64_t;

constexpr std::string_view kTooManyBytes = "more transaction bytes than an mbarrier counts: at most 2^20 - 1";

// One instruction at work: the lanes whose mbarriers are good, and the phase that each of them met.
struct Running {
  const Inst& inst;
  Warp& warp;
  const MbarrierOperands& op;
  Mask lanes;
  std::array<u64, kWarp> phases{};

  Block& block() const { return *warp.block; }
  u64 address(unsigned lane) const { return warp.address()[lane]; }
  MbarrierPhase* phase(unsigned lane) const { return phase_of(block(), address(lane)); }
  u32 count(unsigned lane) const { return op.count != 0 ? warp.at<const u32>(op.count)[lane] : 1u; }
  u32 first_count() const { return count(static_cast<unsigned>(std::countr_zero(lanes))); }
  void invalid(Mask bad, std::string_view detail) const { mbarrier_invalid(warp, inst, bad, warp.address(), detail); }
  bool aborted() const { return warp.stop == Stop::aborted; }
};

// Storage addresses of the lanes; lanes outside the block's shared memory are reported and dropped.
Mask locate(const Inst& i, Warp& w, const MbarrierOperands& op, Mask mask) {
  u64* address = w.address();
  Access a;
  a.kind = op.action == MbarrierAction::test   ? AccessKind::load
           : op.action == MbarrierAction::init ? AccessKind::store
                                               : AccessKind::atomic;
  a.space = Space::shared;
  a.width = 8;
  a.lanes = mask;
  form(w,
       op.via == Via::shared ? shared_source(w, i.a, op.base_width, i.imm)
                             : shared_window_source(w, i.a, op.base_width, i.imm),
       address, a);
  Mask bad = 0, crooked = 0;
  for_lanes(mask, [&](unsigned l) {
    bad |= Mask{address[l] - w.block->info.shared + 8 > w.block->info.shared_extent} << l;
    crooked |= Mask{(address[l] & 7) != 0} << l;
  });
  if (bad != 0) address_fault(i, w, a, bad, Fault::illegal_address);
  if ((crooked & ~bad) != 0) address_fault(i, w, a, crooked & ~bad, Fault::misaligned_address);
  return mask & ~(bad | crooked);
}

void report(const Running& r, MbarrierOp what, Mask lanes, u32 count) {
  if (r.warp.observer == nullptr || lanes == 0) return;
  MbarrierEvent e;
  e.op = what;
  e.order = r.op.order;
  e.scope = r.op.scope;
  e.lanes = lanes;
  e.address = r.warp.address();
  e.count = count;
  e.phase = r.phases.data();
  r.warp.observer->mbarrier(r.warp.point(r.inst, lanes), e);
}

// Counts `lanes` of a pending asynchronous arrival at `address`, behind whose copies they have landed.
void count_async(Block& block, const AsyncArrival& a, u64 address, Mask lanes) {
  u64 phases[kWarp] = {};
  for_lanes(lanes, [&](unsigned l) {
    auto* m = phase_of(block, address);
    phases[l] = m != nullptr ? m->phase : 0;
    MbarrierBits o = MbarrierBits::at(address);
    if (o.pending != 0) --o.pending;
    complete_if_due(block, address, o);
    o.put(address);
  });
  if (a.warp->observer == nullptr) return;
  MbarrierEvent e;
  e.op = MbarrierOp::async_arrive;
  e.lanes = lanes;
  e.address = a.address.data();
  e.count = 1;
  e.phase = phases;
  a.warp->observer->mbarrier(a.warp->point(*a.inst, lanes), e);
}

// Lands the copies behind pending asynchronous arrivals at `address`, and counts the arrivals.
void finish_async(Warp& w, u64 address) {
  Block& block = *w.block;
  for (std::size_t k = 0; k < block.async_arrivals.size();) {
    auto& a = block.async_arrivals[k];
    Mask here = 0;
    for_lanes(a.lanes, [&](unsigned l) { here |= Mask{a.address[l] == address} << l; });
    if (here != 0) {
      land_before(*a.warp, *a.inst, a.before, here);
      count_async(block, a, address, here);
      ++w.worker->memory_changes;
      a.lanes &= ~here;
    }
    if (here != 0 && a.lanes == 0)
      block.async_arrivals.erase(block.async_arrivals.begin() + static_cast<std::ptrdiff_t>(k));
    else ++k;
  }
}

void init(Running& r) {
  Block& block = r.block();
  Mask again = 0;
  for_lanes(r.lanes, [&](unsigned l) {
    const u32 n = r.count(l);
    if (n == 0 || n > MbarrierBits::kCount) r.invalid(Mask{1} << l, "an mbarrier count must be between 1 and 2^20 - 1");
    MbarrierBits{n, n, 0, 0}.put(r.address(l));
    if (auto* m = r.phase(l)) *m = {r.address(l)}, again |= Mask{1} << l;
    else block.mbarriers.push_back({r.address(l)});
    block.mbarriers_begin = std::min(block.mbarriers_begin, r.address(l));
    block.mbarriers_end = std::max(block.mbarriers_end, r.address(l) + 8);
  });
  if (again != 0 && r.warp.observer != nullptr)
    r.invalid(again, "the mbarrier is initialised again, and has not been invalidated");
  ++r.warp.worker->memory_changes;
  report(r, MbarrierOp::init, r.lanes, r.first_count());
}

void invalidate(Running& r) {
  for_lanes(r.lanes, [&](unsigned l) {
    std::erase_if(r.block().mbarriers, [&](const MbarrierPhase& m) { return m.address == r.address(l); });
  });
  report(r, MbarrierOp::invalidate, r.lanes, 0);
}

// The bytes of arrive.expect_tx become pending before the arrival. False: they are too many.
bool expect(const Running& r, unsigned lane, MbarrierBits& o) {
  const std::int64_t bytes = std::int64_t{o.bytes} + r.count(lane);
  if (bytes > std::int64_t{MbarrierBits::kCount}) {
    r.invalid(Mask{1} << lane, kTooManyBytes);
    return false;
  }
  o.bytes = static_cast<std::int32_t>(bytes);
  r.phase(lane)->expected += r.count(lane);
  return true;
}

void arrive(Running& r) {
  const bool drops = r.op.action == MbarrierAction::drop;
  for_lanes(r.lanes, [&](unsigned l) {
    MbarrierBits o = MbarrierBits::at(r.address(l));
    r.phases[l] = r.phase(l)->phase;
    const u32 n = r.op.expects ? 1 : r.count(l);
    if (r.op.expects && !expect(r, l, o)) return;
    if (r.op.state != 0) r.warp.at<u64>(r.op.state)[l] = o.pack();
    if (n > o.pending) return r.invalid(Mask{1} << l, "more arrivals than the mbarrier expects");
    o.pending -= n;
    if (drops) o.expected -= n;
    complete_if_due(r.block(), r.address(l), o);
    o.put(r.address(l));
  });
  if (r.aborted()) return;
  ++r.warp.worker->memory_changes;
  report(r,
         drops          ? MbarrierOp::arrive_drop
         : r.op.expects ? MbarrierOp::arrive_expect_tx
                        : MbarrierOp::arrive,
         r.lanes, r.first_count());
}

void change_bytes(Running& r) {
  const bool expects = r.op.action == MbarrierAction::expect_tx;
  for_lanes(r.lanes, [&](unsigned l) {
    const std::int64_t bytes = r.count(l);
    bool fits = true;
    r.phases[l] = transact(r.block(), r.address(l), expects ? bytes : -bytes, fits);
    if (!fits) r.invalid(Mask{1} << l, kTooManyBytes);
  });
  ++r.warp.worker->memory_changes;
  report(r, expects ? MbarrierOp::expect_tx : MbarrierOp::complete_tx, r.lanes, r.first_count());
}

// Whether the phase that the lane asks for is over.
bool is_over(Running& r, unsigned l) {
  const MbarrierBits o = MbarrierBits::at(r.address(l));
  const u64 now = r.phase(l)->phase;
  r.phases[l] = now == 0 ? 0 : now - 1;
  return r.op.parity ? (o.phase & 1) != (r.warp.at<const u32>(r.op.state)[l] & 1)
                     : o.phase != MbarrierBits::unpack(r.warp.at<const u64>(r.op.state)[l]).phase;
}

// A state is good for the phase that it was given in and the one behind it.
void report_old_states(const Running& r) {
  if (r.op.parity || r.warp.observer == nullptr) return;
  Mask old = 0;
  for_lanes(r.lanes, [&](unsigned l) {
    const u32 now = MbarrierBits::at(r.address(l)).phase;
    const u32 then = MbarrierBits::unpack(r.warp.at<const u64>(r.op.state)[l]).phase;
    old |= Mask{((now - then) & 7) > 1} << l;
  });
  if (old != 0) r.invalid(old, "the state is of a phase before the last one that completed");
}

// The lanes for which it is over. What a test asks for may hang on copies in flight: this is as late as they can land.
Mask test(Running& r) {
  report_old_states(r);
  Mask done = 0;
  for_lanes(r.lanes, [&](unsigned l) {
    bool over = is_over(r, l);
    if (!over && !r.block().async_arrivals.empty()) {
      finish_async(r.warp, r.address(l));
      over = is_over(r, l);
    }
    // Bulk copies land one by one, and only where nothing but bytes is missing.
    while (!over && MbarrierBits::at(r.address(l)).pending == 0 && land_bulk_of(r.warp, r.address(l)))
      over = is_over(r, l);
    done |= Mask{over} << l;
  });
  set_predicate(r.warp, r.inst.d, done, r.lanes);
  report(r, MbarrierOp::test, done, 0);
  report(r, MbarrierOp::test_failed, r.lanes & ~done, 0);
  return done;
}

// Counted when the copies that its lanes have issued have landed.
void arrive_later(Running& r) {
  AsyncArrival a;
  a.warp = &r.warp;
  a.inst = &r.inst;
  a.lanes = r.lanes;
  a.before = r.block().next_copy;
  for_lanes(r.lanes, [&](unsigned l) {
    a.address[l] = r.address(l);
    if (r.op.action == MbarrierAction::async_arrive_noinc) return;
    MbarrierBits o = MbarrierBits::at(r.address(l));
    ++o.pending;
    o.put(r.address(l));
  });
  r.block().async_arrivals.push_back(a);
  ++r.warp.worker->memory_changes;
}

// Drops the lanes whose mbarrier was never initialised.
void drop_unknown(Running& r) {
  Mask unknown = 0;
  for_lanes(r.lanes, [&](unsigned l) { unknown |= Mask{r.phase(l) == nullptr} << l; });
  if (unknown == 0) return;
  r.invalid(unknown, "the mbarrier was not initialised");
  r.lanes &= ~unknown;
}

}  // namespace

const Inst* mbarrier(const Inst& i, Warp& w, Mask mask) {
  mask &= w.active;
  if (mask == 0) return &i + 1;
  const MbarrierOperands& op = *static_cast<const MbarrierOperands*>(i.data);
  if (op.action == MbarrierAction::pending_count) {
    for_lanes(mask,
              [&](unsigned l) { w.at<u32>(i.d)[l] = MbarrierBits::unpack(w.at<const u64>(op.state)[l]).pending; });
    return &i + 1;
  }
  Running r{i, w, op, locate(i, w, op, mask)};
  if (r.aborted()) return nullptr;
  if (r.lanes != 0 && op.action != MbarrierAction::init) drop_unknown(r);
  if (r.aborted()) return nullptr;
  if (r.lanes == 0) return &i + 1;
  switch (op.action) {
    case MbarrierAction::init: init(r); break;
    case MbarrierAction::inval: invalidate(r); break;
    case MbarrierAction::arrive:
    case MbarrierAction::drop: arrive(r); break;
    case MbarrierAction::expect_tx:
    case MbarrierAction::complete_tx: change_bytes(r); break;
    case MbarrierAction::test: {
      const Mask done = test(r);
      if (done == r.lanes) break;
      polled(w, w.address(), r.lanes & ~done);
      // A wait may suspend: others go first, and the program loops.
      if (op.blocking) return stopped(w, Stop::yielded, &i + 1);
      break;
    }
    case MbarrierAction::async_arrive:
    case MbarrierAction::async_arrive_noinc: arrive_later(r); break;
    case MbarrierAction::pending_count: break;
  }
  if (r.aborted()) return nullptr;
  talked(w);
  return &i + 1;
}

void mbarrier_invalid(Warp& w, const Inst& i, Mask lanes, const std::uint64_t* address, std::string_view detail) {
  if (w.observer != nullptr) {
    FaultEvent e;
    e.fault = Fault::mbarrier_invalid;
    e.lanes = lanes;
    e.address = address;
    e.space = Space::shared;
    e.width = 8;
    e.detail = detail;
    w.observer->fault(w.point(i, lanes), e);
  } else {
    abort_launch(w, i, LaunchStatus::trap, std::string(detail), lanes);
  }
}

}  // namespace machine
