// The forms of mbarrier, and cp.async.mbarrier.arrive.
#include "isa/families.hpp"
#include "isa/mbarrier_run.hpp"
#include "isa/memory_decode.hpp"

namespace machine {
namespace {

void emit(Decoder& d, MbarrierOperands op, std::size_t address_at, Slot destination) {
  const auto address = d.address(address_at);
  Via via = op.via;
  check_named_space(d, address, via);
  op.via = via == Via::generic ? Via::generic : Via::shared;
  op.base_width = static_cast<std::uint8_t>(address.width);
  const void* data = d.keep_value(op);
  Inst& i = d.emit(mbarrier);
  i.a = address.base, i.imm = address.offset, i.d = destination, i.data = data;
  if (op.action == MbarrierAction::test) d.program.waits_in_block = true;
  d.ends_block();
}

// Order, scope and state space, in any order.
void modifiers(Decoder& d, MbarrierOperands& op) {
  const int order = d.accept_one({"acquire", "release", "relaxed"});
  const int scope = d.accept_one({"cta", "cluster"});
  const int space = d.accept_one({"shared", "shared::cta", "shared::cluster"});
  if (order >= 0) op.order = order == 0 ? Order::acquire : order == 1 ? Order::release : Order::relaxed;
  if (scope >= 0) op.scope = scope == 0 ? Scope::cta : Scope::cluster;
  op.via = space >= 0 ? Via::shared : Via::generic;
}

void decode(Decoder& d) {
  MbarrierOperands op;
  const int what = d.accept_one(
      {"init", "inval", "arrive", "arrive_drop", "expect_tx", "complete_tx", "test_wait", "try_wait", "pending_count"});
  if (what < 0) d.fail("unknown operation");
  if (d.next().starts_with("phase_type") || d.next().starts_with("layout")) d.fail("this form needs sm_100 or later");
  const bool parity = d.accept("parity"), no_complete = d.accept("noComplete"),
             expects = (what == 2 || what == 3) && d.accept("expect_tx");
  modifiers(d, op);
  d.type({Type::b64});
  switch (what) {
    case 0:
      d.end(2);
      op.action = MbarrierAction::init;
      op.count = d.source(1, Type::u32);
      return emit(d, op, 0, 0);
    case 1:
      d.end(1);
      op.action = MbarrierAction::inval;
      return emit(d, op, 0, 0);
    case 2:
    case 3: {
      op.action = what == 2 ? MbarrierAction::arrive : MbarrierAction::drop;
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
      op.action = what == 4 ? MbarrierAction::expect_tx : MbarrierAction::complete_tx;
      op.count = d.source(1, Type::u32);
      return emit(d, op, 0, 0);
    case 6:
    case 7: {
      op.action = MbarrierAction::test;
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
      op.action = MbarrierAction::pending_count;
      op.state = d.source(1, Type::b64);
      const Slot r = d.destination(0, Type::b32);
      const void* data = d.keep_value(op);
      Inst& i = d.emit(mbarrier);
      i.d = r, i.data = data;
    }
  }
}

}  // namespace

void decode_async_arrive(Decoder& d) {
  MbarrierOperands op;
  if (!d.accept("arrive")) d.fail("needs .arrive");
  op.action = d.accept("noinc") ? MbarrierAction::async_arrive_noinc : MbarrierAction::async_arrive;
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
