// mbarrier objects in shared memory, and cp.async.mbarrier.arrive.
#include <cstring>

#include "families.hpp"
#include "memory_decode.hpp"
#include "schedule.hpp"

namespace machine {
namespace {

using u32 = std::uint32_t;
using u64 = std::uint64_t;
using s64 = std::int64_t;

// The object's 64 bits: pending arrivals 20, expected arrivals 20, phase 3, pending transaction bytes 21 (signed).
struct Object64 {
  u32 pending = 0, expected = 0, phase = 0;
  std::int32_t bytes = 0;
};
constexpr u32 kCount = (1u << 20) - 1;
Object64 unpack(u64 v) {
  Object64 o;
  o.pending = static_cast<u32>(v) & kCount;
  o.expected = static_cast<u32>(v >> 20) & kCount;
  o.phase = static_cast<u32>(v >> 40) & 7;
  o.bytes = static_cast<std::int32_t>(static_cast<s64>(v) >> 43);
  return o;
}
u64 pack(const Object64& o) {
  return u64{o.pending & kCount} | u64{o.expected & kCount} << 20 | u64{o.phase & 7} << 40 | static_cast<u64>(static_cast<s64>(o.bytes)) << 43;
}

MbarrierPhase* shadow(Block& block, u64 address) {
  for (auto& m : block.mbarriers)
    if (m.address == address) return &m;
  return nullptr;
}

// The phase completes when nothing is pending; the next one begins.
void complete_if_due(Block& block, u64 address, Object64& o) {
  if (o.pending != 0 || o.bytes != 0) return;
  o.phase = (o.phase + 1) & 7;
  o.pending = o.expected;
  if (auto* m = shadow(block, address)) ++m->phase;
}

enum class What : std::uint8_t { init, inval, arrive, drop, expect_tx, complete_tx, test, pending_count, async_arrive, async_arrive_noinc };

struct MbarrierOp64 {
  What what = What::arrive;
  Order order = Order::release;
  Scope scope = Scope::cta;
  Via via = Via::shared;
  std::uint8_t base_width = 4;
  bool expects = false;   // arrive.expect_tx
  bool parity = false, blocking = false;
  Slot count = 0;         // arrive count, init count, transaction bytes
  Slot state = 0;         // destination of arrive (0: none), source of test
};

// Storage addresses of the lanes; lanes outside the block's shared memory are reported and dropped.
Mask locate(const Inst& i, Warp& w, const MbarrierOp64& op, Mask mask) {
  u64* address = w.address();
  Access a;
  a.kind = op.what == What::test ? AccessKind::load : op.what == What::init ? AccessKind::store : AccessKind::atomic;
  a.space = Space::shared;
  a.width = 8;
  a.lanes = mask;
  form(w, op.via == Via::shared ? shared_source(w, i.a, op.base_width, i.imm) : shared_window_source(w, i.a, op.base_width, i.imm), address, a);
  Mask bad = 0, crooked = 0;
  for_lanes(mask, [&](unsigned l) {
    bad |= Mask{address[l] - w.block->info.shared + 8 > w.block->info.shared_extent} << l;
    crooked |= Mask{(address[l] & 7) != 0} << l;
  });
  if (bad != 0) address_fault(i, w, a, bad, Fault::illegal_address);
  if ((crooked & ~bad) != 0) address_fault(i, w, a, crooked & ~bad, Fault::misaligned_address);
  return mask & ~(bad | crooked);
}

void tell(Warp& w, const Inst& i, MbarrierOp what, const MbarrierOp64& op, Mask lanes, u32 count, const u64* phase) {
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
  if (w.observer != nullptr) {
    FaultEvent e;
    e.fault = Fault::mbarrier_invalid;
    e.lanes = lanes;
    e.address = w.address();
    e.space = Space::shared;
    e.width = 8;
    e.detail = detail;
    w.observer->fault(w.point(i, lanes), e);
  } else {
    abort_launch(w, i, LaunchStatus::trap, std::string(detail), lanes);
  }
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
      auto* m = shadow(block, address);
      phases[l] = m != nullptr ? m->phase : 0;
      u64 raw;
      std::memcpy(&raw, reinterpret_cast<void*>(address), 8);
      Object64 o = unpack(raw);
      if (o.pending != 0) --o.pending;
      complete_if_due(block, address, o);
      raw = pack(o);
      std::memcpy(reinterpret_cast<void*>(address), &raw, 8);
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
  const MbarrierOp64& op = *static_cast<const MbarrierOp64*>(i.data);
  Block& block = *w.block;
  if (op.what == What::pending_count) {
    for_lanes(mask, [&](unsigned l) { w.at<u32>(i.d)[l] = unpack(w.at<const u64>(op.state)[l]).pending; });
    return &i + 1;
  }
  mask = locate(i, w, op, mask);
  if (w.stop == Stop::aborted) return nullptr;
  if (mask == 0) return &i + 1;
  u64* address = w.address();
  u64 phases[kWarp] = {};
  auto read = [&](unsigned l) {
    u64 raw;
    std::memcpy(&raw, reinterpret_cast<void*>(address[l]), 8);
    return unpack(raw);
  };
  auto write = [&](unsigned l, const Object64& o) {
    const u64 raw = pack(o);
    std::memcpy(reinterpret_cast<void*>(address[l]), &raw, 8);
  };
  auto count_of = [&](unsigned l) { return op.count != 0 ? w.at<const u32>(op.count)[l] : 1u; };
  if (op.what != What::init) {
    Mask unknown = 0;
    for_lanes(mask, [&](unsigned l) { unknown |= Mask{shadow(block, address[l]) == nullptr} << l; });
    if (unknown != 0) {
      invalid(w, i, unknown, "the mbarrier was not initialised");
      if (w.stop == Stop::aborted) return nullptr;
      mask &= ~unknown;
      if (mask == 0) return &i + 1;
    }
  }
  const u32 first_count = count_of(static_cast<unsigned>(std::countr_zero(mask)));
  switch (op.what) {
    case What::init: {
      for_lanes(mask, [&](unsigned l) {
        const u32 n = count_of(l);
        if (n == 0 || n > kCount) invalid(w, i, Mask{1} << l, "an mbarrier count must be between 1 and 2^20 - 1");
        write(l, {n, n, 0, 0});
        if (auto* m = shadow(block, address[l])) m->phase = 0;
        else block.mbarriers.push_back({address[l], 0});
      });
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
    case What::arrive: case What::drop: {
      for_lanes(mask, [&](unsigned l) {
        Object64 o = read(l);
        phases[l] = shadow(block, address[l])->phase;
        const u32 n = op.expects ? 1 : count_of(l);
        if (op.expects) o.bytes += static_cast<std::int32_t>(count_of(l));
        if (op.state != 0) w.at<u64>(op.state)[l] = pack(o);
        if (n > o.pending) {
          invalid(w, i, Mask{1} << l, "more arrivals than the mbarrier expects");
          return;
        }
        o.pending -= n;
        if (op.what == What::drop) o.expected -= n;
        complete_if_due(block, address[l], o);
        write(l, o);
      });
      if (w.stop == Stop::aborted) return nullptr;
      ++w.worker->memory_changes;
      tell(w, i, op.what == What::drop ? MbarrierOp::arrive_drop : op.expects ? MbarrierOp::arrive_expect_tx : MbarrierOp::arrive, op, mask, first_count, phases);
      break;
    }
    case What::expect_tx: case What::complete_tx: {
      for_lanes(mask, [&](unsigned l) {
        Object64 o = read(l);
        phases[l] = shadow(block, address[l])->phase;
        o.bytes += op.what == What::expect_tx ? static_cast<std::int32_t>(count_of(l)) : -static_cast<std::int32_t>(count_of(l));
        complete_if_due(block, address[l], o);
        write(l, o);
      });
      ++w.worker->memory_changes;
      tell(w, i, op.what == What::expect_tx ? MbarrierOp::expect_tx : MbarrierOp::complete_tx, op, mask, first_count, phases);
      break;
    }
    case What::test: {
      Mask done = 0;
      auto look = [&](unsigned l) {
        const Object64 o = read(l);
        const u64 now = shadow(block, address[l])->phase;
        const bool complete = op.parity ? (o.phase & 1) != (w.at<const u32>(op.state)[l] & 1) : o.phase != unpack(w.at<const u64>(op.state)[l]).phase;
        if (complete) done |= Mask{1} << l;
        phases[l] = now == 0 ? 0 : now - 1;
        return complete;
      };
      for_lanes(mask, [&](unsigned l) {
        // What this wait asks for may hang on copies in flight: this is as late as they can land.
        if (!look(l) && !block.async_arrivals.empty()) {
          const u64 where = address[l];
          finish_async(w, i, where);
          look(l);
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
    case What::async_arrive: case What::async_arrive_noinc: {
      AsyncArrival a;
      a.warp = &w;
      a.inst = &i;
      a.lanes = mask;
      a.before = block.next_copy;
      for_lanes(mask, [&](unsigned l) {
        a.address[l] = address[l];
        if (op.what == What::async_arrive) {
          Object64 o = read(l);
          ++o.pending;
          write(l, o);
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

void emit(Decoder& d, MbarrierOp64 op, std::size_t address_at, Slot destination) {
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
void modifiers(Decoder& d, MbarrierOp64& op) {
  const int order = d.take_one({"acquire", "release", "relaxed"});
  const int scope = d.take_one({"cta", "cluster"});
  const int space = d.take_one({"shared", "shared::cta", "shared::cluster"});
  if (order >= 0) op.order = order == 0 ? Order::acquire : order == 1 ? Order::release : Order::relaxed;
  if (scope >= 0) op.scope = scope == 0 ? Scope::cta : Scope::cluster;
  op.via = space >= 0 ? Via::shared : Via::generic;
}

void decode(Decoder& d) {
  MbarrierOp64 op;
  const int what = d.take_one({"init", "inval", "arrive", "arrive_drop", "expect_tx", "complete_tx", "test_wait", "try_wait", "pending_count"});
  if (what < 0) d.fail("unknown operation");
  const bool parity = d.take("parity"), no_complete = d.take("noComplete"), expects = (what == 2 || what == 3) && d.take("expect_tx");
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
    case 2: case 3: {
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
    case 4: case 5:
      d.end(2);
      op.what = what == 4 ? What::expect_tx : What::complete_tx;
      op.count = d.source(1, Type::u32);
      return emit(d, op, 0, 0);
    case 6: case 7: {
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

void decode_async_arrive(Decoder& d) {
  MbarrierOp64 op;
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
