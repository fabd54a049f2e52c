// mbarrier objects in shared memory, and cp.async.mbarrier.arrive.
#include <algorithm>
#include <cstring>

#include "exec/bulk.hpp"
#include "exec/mbarrier.hpp"
#include "exec/schedule.hpp"
#include "isa/families.hpp"
#include "isa/memory_decode.hpp"

namespace machine {
namespace {

using u32 = std::uint32_t;
using u64 = std::uint64_t;

constexpr std::string_view kTooManyBytes = "more transaction bytes than an mbarrier counts: at most 2^20 - 1";

enum class What : std::uint8_t {
  init,
  inval,
  arrive,
  drop,
  expect_tx,
  complete_tx,
  test,
  pending_count,
  async_arrive,
  async_arrive_noinc
};

struct MbarrierOperands {
  What what = What::arrive;
  Order order = Order::release;
  Scope scope = Scope::cta;
  Via via = Via::shared;
  std::uint8_t base_width = 4;
  bool expects = false;  // arrive.expect_tx
  bool parity = false, blocking = false;
  Slot count = 0;  // arrive count, init count, transaction bytes
  Slot state = 0;  // destination of arrive (0: none), source of test
};

// Storage addresses of the lanes; lanes outside the block's shared memory are reported and dropped.
Mask locate(const Inst& i, Warp& w, const MbarrierOperands& op, Mask mask) {
  u64* address = w.address();
  Access a;
  a.kind = op.what == What::test ? AccessKind::load : op.what == What::init ? AccessKind::store : AccessKind::atomic;
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

void tell(Warp& w, const Inst& i, MbarrierOp what, const MbarrierOperands& op, Mask lanes, u32 count,
          const u64* phase) {
  if (w.observer == nullptr || lanes == 0) return;
  MbarrierEvent e;
  e.op = what;
  e.order = op.order;
  e.scope = op.scope;
  e.lanes = lanes;
  e.address = w.address();
  e.count = count;
  e.phase = phase;
  w.observer->mbarrier(w.point(i, lanes), e);
}

void invalid(Warp& w, const Inst& i, Mask lanes, std::string_view detail) {
  mbarrier_invalid(w, i, lanes, w.address(), detail);
}

// Lands the copies behind pending asynchronous arrivals at `address`, and counts the arrivals.
void finish_async(Warp& w, const Inst& i, u64 address) {
  Block& block = *w.block;
  for (std::size_t k = 0; k < block.async_arrivals.size();) {
    auto& a = block.async_arrivals[k];
    Mask here = 0;
    for_lanes(a.lanes, [&](unsigned l) { here |= Mask{a.address[l] == address} << l; });
    if (here == 0) {
      ++k;
      continue;
    }
    land_before(*a.warp, *a.inst, a.before, here);
    u64 phases[kWarp] = {};
    for_lanes(here, [&](unsigned l) {
      auto* m = phase_of(block, address);
      phases[l] = m != nullptr ? m->phase : 0;
      MbarrierBits o = MbarrierBits::at(address);
      if (o.pending != 0) --o.pending;
      complete_if_due(block, address, o);
      o.put(address);
    });
    ++w.worker->memory_changes;
    if (w.observer != nullptr) {
      MbarrierEvent e;
      e.op = MbarrierOp::async_arrive;
      e.lanes = here;
      e.address = a.address.data();
      e.count = 1;
      e.phase = phases;
      w.observer->mbarrier(a.warp->point(*a.inst, here), e);
    }
    a.lanes &= ~here;
    if (a.lanes == 0) block.async_arrivals.erase(block.async_arrivals.begin() + static_cast<std::ptrdiff_t>(k));
    else ++k;
  }
  (void)i;
}

const Inst* mbarrier(const Inst& i, Warp& w, Mask mask) {
  mask &= w.active;
  if (mask == 0) return &i + 1;
  const MbarrierOperands& op = *static_cast<const MbarrierOperands*>(i.data);
  Block& block = *w.block;
  if (op.what == What::pending_count) {
    for_lanes(mask,
              [&](unsigned l) { w.at<u32>(i.d)[l] = MbarrierBits::unpack(w.at<const u64>(op.state)[l]).pending; });
    return &i + 1;
  }
  mask = locate(i, w, op, mask);
  if (w.stop == Stop::aborted) return nullptr;
  if (mask == 0) return &i + 1;
  u64* address = w.address();
  u64 phases[kWarp] = {};
  auto count_of = [&](unsigned l) { return op.count != 0 ? w.at<const u32>(op.count)[l] : 1u; };
  if (op.what != What::init) {
    Mask unknown = 0;
    for_lanes(mask, [&](unsigned l) { unknown |= Mask{phase_of(block, address[l]) == nullptr} << l; });
    if (unknown != 0) {
      invalid(w, i, unknown, "the mbarrier was not initialised");
      if (w.stop == Stop::aborted) return nullptr;
      mask &= ~unknown;
      if (mask == 0) return &i + 1;
    }
  }
  // Before an arrival the bytes of arrive.expect_tx become pending.
  auto expect = [&](unsigned l, MbarrierBits& o) {
    const std::int64_t bytes = std::int64_t{o.bytes} + count_of(l);
    if (bytes > std::int64_t{MbarrierBits::kCount}) {
      invalid(w, i, Mask{1} << l, kTooManyBytes);
      return false;
    }
    o.bytes = static_cast<std::int32_t>(bytes);
    phase_of(block, address[l])->expected += count_of(l);
    return true;
  };
  const u32 first_count = count_of(static_cast<unsigned>(std::countr_zero(mask)));
  switch (op.what) {
    case What::init: {
      Mask again = 0;
      for_lanes(mask, [&](unsigned l) {
        const u32 n = count_of(l);
        if (n == 0 || n > MbarrierBits::kCount)
          invalid(w, i, Mask{1} << l, "an mbarrier count must be between 1 and 2^20 - 1");
        MbarrierBits{n, n, 0, 0}.put(address[l]);
        if (auto* m = phase_of(block, address[l])) *m = {address[l]}, again |= Mask{1} << l;
        else block.mbarriers.push_back({address[l]});
        block.mbarriers_begin = std::min(block.mbarriers_begin, address[l]);
        block.mbarriers_end = std::max(block.mbarriers_end, address[l] + 8);
      });
      if (again != 0 && w.observer != nullptr)
        invalid(w, i, again, "the mbarrier is initialised again, and has not been invalidated");
      ++w.worker->memory_changes;
      tell(w, i, MbarrierOp::init, op, mask, first_count, phases);
      break;
    }
    case What::inval: {
      for_lanes(mask, [&](unsigned l) {
        std::erase_if(block.mbarriers, [&](const MbarrierPhase& m) { return m.address == address[l]; });
      });
      tell(w, i, MbarrierOp::invalidate, op, mask, 0, phases);
      break;
    }
    case What::arrive:
    case What::drop: {
      for_lanes(mask, [&](unsigned l) {
        MbarrierBits o = MbarrierBits::at(address[l]);
        phases[l] = phase_of(block, address[l])->phase;
        const u32 n = op.expects ? 1 : count_of(l);
        if (op.expects && !expect(l, o)) return;
        if (op.state != 0) w.at<u64>(op.state)[l] = o.pack();
        if (n > o.pending) {
          invalid(w, i, Mask{1} << l, "more arrivals than the mbarrier expects");
          return;
        }
        o.pending -= n;
        if (op.what == What::drop) o.expected -= n;
        complete_if_due(block, address[l], o);
        o.put(address[l]);
      });
      if (w.stop == Stop::aborted) return nullptr;
      ++w.worker->memory_changes;
      tell(w, i,
           op.what == What::drop ? MbarrierOp::arrive_drop
           : op.expects          ? MbarrierOp::arrive_expect_tx
                                 : MbarrierOp::arrive,
           op, mask, first_count, phases);
      break;
    }
    case What::expect_tx:
    case What::complete_tx: {
      for_lanes(mask, [&](unsigned l) {
        bool fits = true;
        phases[l] = transact(block, address[l],
                             op.what == What::expect_tx ? std::int64_t{count_of(l)} : -std::int64_t{count_of(l)}, fits);
        if (!fits) invalid(w, i, Mask{1} << l, kTooManyBytes);
      });
      ++w.worker->memory_changes;
      tell(w, i, op.what == What::expect_tx ? MbarrierOp::expect_tx : MbarrierOp::complete_tx, op, mask, first_count,
           phases);
      break;
    }
    case What::test: {
      // A state is good for the phase that it was given in and the one behind it.
      Mask old = 0;
      if (!op.parity && w.observer != nullptr)
        for_lanes(mask, [&](unsigned l) {
          const u32 now = MbarrierBits::at(address[l]).phase,
                    then = MbarrierBits::unpack(w.at<const u64>(op.state)[l]).phase;
          old |= Mask{((now - then) & 7) > 1} << l;
        });
      if (old != 0) invalid(w, i, old, "the state is of a phase before the last one that completed");
      Mask done = 0;
      auto look = [&](unsigned l) {
        const MbarrierBits o = MbarrierBits::at(address[l]);
        const u64 now = phase_of(block, address[l])->phase;
        const bool complete = op.parity ? (o.phase & 1) != (w.at<const u32>(op.state)[l] & 1)
                                        : o.phase != MbarrierBits::unpack(w.at<const u64>(op.state)[l]).phase;
        if (complete) done |= Mask{1} << l;
        phases[l] = now == 0 ? 0 : now - 1;
        return complete;
      };
      for_lanes(mask, [&](unsigned l) {
        if (look(l)) return;
        // What this wait asks for may hang on copies in flight: this is as late as they can land.
        const u64 where = address[l];
        if (!block.async_arrivals.empty()) finish_async(w, i, where);
        // Bulk copies land one by one, and only where nothing but bytes is missing.
        while (!look(l) && MbarrierBits::at(where).pending == 0 && land_bulk_of(w, where)) {
        }
      });
      set_predicate(w, i.d, done, mask);
      tell(w, i, MbarrierOp::test, op, done, 0, phases);
      tell(w, i, MbarrierOp::test_failed, op, mask & ~done, 0, phases);
      if (done != mask) {
        polled(w, address, mask & ~done);
        // A wait may suspend: others go first, and the program loops.
        if (op.blocking) return stopped(w, Stop::yielded, &i + 1);
      }
      break;
    }
    case What::async_arrive:
    case What::async_arrive_noinc: {
      AsyncArrival a;
      a.warp = &w;
      a.inst = &i;
      a.lanes = mask;
      a.before = block.next_copy;
      for_lanes(mask, [&](unsigned l) {
        a.address[l] = address[l];
        if (op.what == What::async_arrive) {
          MbarrierBits o = MbarrierBits::at(address[l]);
          ++o.pending;
          o.put(address[l]);
        }
      });
      block.async_arrivals.push_back(a);
      ++w.worker->memory_changes;
      break;
    }
    case What::pending_count: break;
  }
  talked(w);
  return &i + 1;
}

void emit(Decoder& d, MbarrierOperands op, std::size_t address_at, Slot destination) {
  const auto address = d.address(address_at);
  Via via = op.via;
  check_named_space(d, address, via);
  op.via = via == Via::generic ? Via::generic : Via::shared;
  op.base_width = static_cast<std::uint8_t>(address.width);
  const void* data = keep_bytes(d, op);
  Inst& i = d.emit(mbarrier);
  i.a = address.base, i.imm = address.offset, i.d = destination, i.data = data;
  if (op.what == What::test) d.program.waits_in_block = true;
  d.ends_block();
}

// Order, scope and state space, in any order.
void modifiers(Decoder& d, MbarrierOperands& op) {
  const int order = d.take_one({"acquire", "release", "relaxed"});
  const int scope = d.take_one({"cta", "cluster"});
  const int space = d.take_one({"shared", "shared::cta", "shared::cluster"});
  if (order >= 0) op.order = order == 0 ? Order::acquire : order == 1 ? Order::release : Order::relaxed;
  if (scope >= 0) op.scope = scope == 0 ? Scope::cta : Scope::cluster;
  op.via = space >= 0 ? Via::shared : Via::generic;
}

void decode(Decoder& d) {
  MbarrierOperands op;
  const int what = d.take_one(
      {"init", "inval", "arrive", "arrive_drop", "expect_tx", "complete_tx", "test_wait", "try_wait", "pending_count"});
  if (what < 0) d.fail("unknown operation");
  if (d.next().starts_with("phase_type") || d.next().starts_with("layout")) d.fail("this form needs sm_100 or later");
  const bool parity = d.take("parity"), no_complete = d.take("noComplete"),
             expects = (what == 2 || what == 3) && d.take("expect_tx");
  modifiers(d, op);
  d.type({Type::b64});
  switch (what) {
    case 0:
      d.end(2);
      op.what = What::init;
      op.count = d.source(1, Type::u32);
      return emit(d, op, 0, 0);
    case 1:
      d.end(1);
      op.what = What::inval;
      return emit(d, op, 0, 0);
    case 2:
    case 3: {
      op.what = what == 2 ? What::arrive : What::drop;
      op.expects = expects;
      // arrive state, [address] {, count}; the state may be absent
      const std::size_t at = d.operand(0).kind == Operand::address ? 0 : 1;
      d.end(at + 1, at + 2);
      if (at == 1) op.state = d.destination(0, Type::b64);
      if (d.count() == at + 2) op.count = d.source(at + 1, Type::u32);
      else if (expects || no_complete) d.fail("needs a count");
      return emit(d, op, at, 0);
    }
    case 4:
    case 5:
      d.end(2);
      op.what = what == 4 ? What::expect_tx : What::complete_tx;
      op.count = d.source(1, Type::u32);
      return emit(d, op, 0, 0);
    case 6:
    case 7: {
      op.what = What::test;
      if (op.order == Order::release) op.order = Order::acquire;
      op.parity = parity;
      op.blocking = what == 7;
      d.end(3, what == 7 ? 4 : 3);
      op.state = d.source(2, parity ? Type::b32 : Type::b64);
      if (d.count() == 4) d.source(3, Type::u32);
      return emit(d, op, 1, d.predicate_destination(d.operand(0)));
    }
    default: {
      d.end(2);
      op.what = What::pending_count;
      op.state = d.source(1, Type::b64);
      const Slot r = d.destination(0, Type::b32);
      const void* data = keep_bytes(d, op);
      Inst& i = d.emit(mbarrier);
      i.d = r, i.data = data;
    }
  }
}

}  // namespace

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

void decode_async_arrive(Decoder& d) {
  MbarrierOperands op;
  if (!d.take("arrive")) d.fail("needs .arrive");
  op.what = d.take("noinc") ? What::async_arrive_noinc : What::async_arrive;
  modifiers(d, op);
  d.type({Type::b64});
  d.end(1);
  d.klass(InstructionClass::async_copy);
  emit(d, op, 0, 0);
}

std::span<const Opcode> mbarrier_opcodes() {
  static const Opcode table[] = {{"mbarrier", decode, InstructionClass::barrier}};
  return table;
}

}  // namespace machine
