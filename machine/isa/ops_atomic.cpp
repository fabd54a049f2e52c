// The forms of atom and red.
#include <algorithm>

#include "isa/atomic_run.hpp"
#include "isa/families.hpp"
#include "isa/memory_decode.hpp"

namespace machine {
namespace {

bool swaps(const AtomicOp& op) { return op.kind == AtomicKind::exch || op.kind == AtomicKind::cas; }

Merge merge_of(AtomicKind kind) {
  switch (kind) {
    case AtomicKind::exch:
    case AtomicKind::cas: return Merge::replace;
    case AtomicKind::and_: return Merge::and_;
    case AtomicKind::or_: return Merge::or_;
    case AtomicKind::xor_: return Merge::xor_;
    default: return Merge::any;
  }
}

// Everything but the operands. Returns the type.
Type operation(Decoder& d, AtomicOp& op, MemoryModifiers& m) {
  // Modifiers come in any order; the operation's name is no type, so the scan stops there and goes on behind it.
  const int which = d.accept_one({"add", "min", "max", "inc", "dec", "and", "or", "xor", "exch", "cas"});
  if (which < 0) d.fail("needs an operation");
  op.kind = static_cast<AtomicKind>(which);
  if (op.kind == AtomicKind::cas && !op.returns) d.fail("needs atom");
  const bool noftz = d.accept("noftz");
  m = memory_modifiers(d);
  const Type t = d.type();
  if (m.cache != CacheOp::none) d.fail("takes no cache operator");
  if (m.via == Via::local || m.via == Via::constant || m.via == Via::param) d.fail("not in this state space");
  if (m.vector != 1) {
    const bool half = t == Type::f16 || t == Type::bf16, pairs = t == Type::f16x2 || t == Type::bf16x2;
    if (!half && !(t == Type::f32 && m.vector <= 4) && !(pairs && m.vector <= 4)) d.fail("no such vector");
    if (m.via != Via::global) d.fail("a vector needs .global");
  }
  const bool wide = t == Type::b128;
  op.apply = atomic_function(op.kind, t, noftz, m.via == Via::shared);
  if (wide ? !swaps(op) : op.apply == nullptr) d.refuse_type(t);
  MemoryOp& memory = op.memory;
  memory.kind = op.returns ? AccessKind::atomic : AccessKind::reduction;
  memory.via = m.via;
  memory.order = m.order == Order::weak ? Order::relaxed : m.order;
  memory.scope = m.scope == Scope::none ? Scope::gpu : m.scope;
  memory.element = wide ? 8 : static_cast<std::uint8_t>(bytes_of(t));
  memory.components = static_cast<std::uint8_t>(wide ? 2 : m.vector);
  memory.register_width = memory.element;
  memory.width = memory.element * memory.components;
  memory.merge = merge_of(op.kind);
  memory.transfer = wide ? transfer_atomic_wide : transfer_atomic;
  memory.transfer_local = [](const MemoryOp&, Warp& w, const std::uint64_t*, Mask, Shape) {
    w.worker->status = LaunchStatus::illegal_address;
  };
  return t;
}

// The registers of operand `index`: of a vector, or the halves of one of 128 bits.
std::vector<Operand> parts(Decoder& d, std::size_t index, Type type, unsigned vector) {
  const Operand& o = d.operand(index);
  if (type == Type::b128) {
    const auto halves = d.halves(o);
    return {halves.begin(), halves.end()};
  }
  const bool list = o.kind == Operand::list && !o.piped;
  if (list != (vector != 1) || (list && o.parts.size() != vector))
    d.fail("the vector and its registers differ in length");
  return list ? o.parts : std::vector<Operand>{o};
}

// The operands from `first` on are one or two values; the one before is the result.
void registers(Decoder& d, AtomicOp& op, std::size_t first, Type type, unsigned vector) {
  const Type element = type == Type::b128 ? Type::b64 : type;
  unsigned at = 0;
  for (const auto& p : parts(d, first, type, vector)) op.memory.registers[at++] = d.source(p, element);
  if (op.kind == AtomicKind::cas) {
    at = 0;
    for (const auto& p : parts(d, first + 1, type, vector)) op.second[at++] = d.source(p, element);
    if (type != Type::b128) op.memory.registers[1] = op.second[0];
  }
  if (!op.returns) return;
  at = 0;
  if (d.operand(0).kind != Operand::sink)
    for (const auto& p : parts(d, 0, type, vector)) op.result[at++] = d.destination(p, element);
  else
    for (; at < op.memory.components; ++at) op.result[at] = d.destination(d.operand(0), element);
}

void decode(Decoder& d, bool returns) {
  if (!returns && d.accept("async")) return decode_reduce_async(d);
  AtomicOp op;
  op.returns = returns;
  MemoryModifiers m;
  const Type t = operation(d, op, m);
  const std::size_t address_at = returns ? 1 : 0, policy_at = address_at + (op.kind == AtomicKind::cas ? 3 : 2);
  d.end(policy_at, policy_at + 1);
  if (d.count() > policy_at) {
    if (!m.cache_hint) d.fail("one operand too many");
    d.source(policy_at, Type::b64);
  }
  const auto address = d.address(address_at);
  check_named_space(d, address, op.memory.via);
  if (op.memory.via == Via::local) d.fail("not in this state space");
  op.memory.base_width = static_cast<std::uint8_t>(address.width);
  if (address.width == 4 && op.memory.via != Via::shared) d.fail("a 32-bit address register");
  registers(d, op, address_at + 1, t, m.vector);
  if (op.memory.via != Via::shared) {
    d.program.communicates = true;
    d.program.stores.global = std::max(d.program.stores.global, op.memory.element);
  } else if (swaps(op) && returns) {
    d.program.waits_in_block = true;
  }
  if (is_float(t) || t == Type::f16x2 || t == Type::bf16x2) d.need_mode({false, 'n'});
  Inst& i = d.emit(atomic);
  i.a = address.base, i.imm = address.offset;
  i.data = d.keep_value(op);
  d.ends_block();
}

}  // namespace

std::span<const Opcode> atomic_opcodes() {
  static const Opcode table[] = {{"atom", [](Decoder& d) { decode(d, true); }, InstructionClass::atomic},
                                 {"red", [](Decoder& d) { decode(d, false); }, InstructionClass::atomic}};
  return table;
}

}  // namespace machine
