// atom and red: read-modify-write in global, shared and generic memory.
#include <algorithm>
#include <cstring>

#include "families.hpp"
#include "memory_decode.hpp"
#include "real.hpp"
#include "undefined.hpp"

namespace machine {
namespace {

using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;
using s32 = std::int32_t;
using s64 = std::int64_t;

enum class Op : std::uint8_t { add, min, max, inc, dec, and_, or_, xor_, exch, cas };

// MemoryOp with what an atomic needs besides: a second operand and a result. registers[0] is the operand.
struct AtomicOp {
  MemoryOp memory;
  Op op = Op::add;
  Type type = Type::u32;
  Slot second = 0, result = 0;
  bool returns = false, flush = true;
  u64 (*apply)(u64 old, u64 operand, u64 second) = nullptr;
};

template <class T> u64 raw(T v) {
  u64 r = 0;
  std::memcpy(&r, &v, sizeof v);
  return r;
}
template <class T> T as(u64 v) {
  T r;
  std::memcpy(&r, &v, sizeof r);
  return r;
}

template <Op O, class T>
u64 integer(u64 old, u64 operand, u64 second) {
  const T a = as<T>(old), b = as<T>(operand);
  switch (O) {
    case Op::add: return raw(static_cast<T>(static_cast<std::make_unsigned_t<T>>(a) + static_cast<std::make_unsigned_t<T>>(b)));
    case Op::min: return raw(std::min(a, b));
    case Op::max: return raw(std::max(a, b));
    case Op::inc: return raw(static_cast<T>(a >= b ? 0 : a + 1));
    case Op::dec: return raw(static_cast<T>(a == 0 || a > b ? b : a - 1));
    case Op::and_: return raw(static_cast<T>(a & b));
    case Op::or_: return raw(static_cast<T>(a | b));
    case Op::xor_: return raw(static_cast<T>(a ^ b));
    case Op::exch: return raw(b);
    case Op::cas: return raw(a == b ? as<T>(second) : a);
  }
  return old;
}
// atom.add.f32 flushes subnormals on global memory, and on shared memory does not.
template <bool Flush>
u64 add_float(u64 old, u64 operand, u64) {
  const float a = as<float>(old), b = as<float>(operand);
  return raw(Flush ? flushed(canonical(flushed(a) + flushed(b))) : canonical(a + b));
}
u64 add_double(u64 old, u64 operand, u64) {
  // NaN pass as they are, the operand's first.
  const double a = as<double>(old), b = as<double>(operand);
  return b != b ? operand : a != a ? old : raw(a + b);
}

template <class H>
u16 add_half(u16 a, u16 b) { return H::narrow(H::widen(a) + H::widen(b)); }
template <class H, bool Max>
u16 choose_half(u16 a, u16 b) {
  const float x = H::widen(a), y = H::widen(b);
  if (x != x) return y != y ? kNan16 : b;
  if (y != y) return a;
  const bool first = Max ? (x > y || (x == y && !(a & 0x8000))) : (x < y || (x == y && (a & 0x8000)));
  return first ? a : b;
}
template <u16 (*F)(u16, u16)>
u64 single(u64 old, u64 operand, u64) { return F(static_cast<u16>(old), static_cast<u16>(operand)); }
template <u16 (*F)(u16, u16)>
u64 pair(u64 old, u64 operand, u64) {
  return static_cast<u64>(F(static_cast<u16>(old >> 16), static_cast<u16>(operand >> 16))) << 16 | F(static_cast<u16>(old), static_cast<u16>(operand));
}

u64 read_slot(const Warp& w, Slot s, unsigned bytes, unsigned lane) {
  return bytes == 2 ? w.at<const u16>(s)[lane] : bytes == 4 ? w.at<const u32>(s)[lane] : w.at<const u64>(s)[lane];
}

// Lanes one after the other, in an order that PTX leaves open: two lanes on one address see each other.
void transfer(const MemoryOp& memory, Warp& w, const u64* address, Mask mask, Shape) {
  const AtomicOp& op = reinterpret_cast<const AtomicOp&>(memory);
  const unsigned bytes = memory.element;
  bool changed = false;
  const auto lane = [&](unsigned l) {
    void* at = reinterpret_cast<void*>(address[l]);
    u64 old = 0;
    std::memcpy(&old, at, bytes);
    const u64 value = op.apply(old, read_slot(w, memory.registers[0], bytes, l), op.second != 0 ? read_slot(w, op.second, bytes, l) : 0);
    changed |= value != old;
    std::memcpy(at, &value, bytes);
    if (op.returns) {
      if (bytes == 2) w.at<u16>(op.result)[l] = static_cast<u16>(old);
      else if (bytes == 4) w.at<u32>(op.result)[l] = static_cast<u32>(old);
      else w.at<u64>(op.result)[l] = old;
    }
  };
  if (Turns& turns = w.worker->turns; turns.permuted()) {
    const auto order = turns.lanes();
    for (unsigned k = 0; k < kWarp; ++k)
      if (const unsigned l = order.lane(k); (mask >> l & 1) != 0) lane(l);
  } else {
    for_lanes(mask, lane);
  }
  if (!changed) {
    --w.worker->memory_changes;  // before_store counted one
    polled(w, address, mask);
  }
}

const Inst* atomic(const Inst& i, Warp& w, Mask mask) {
  mask &= w.active;
  if (mask == 0) return &i + 1;
  const AtomicOp& op = *static_cast<const AtomicOp*>(i.data);
  if (w.follows) [[unlikely]] before_atomic(i, w, op.memory, op.second != 0 ? op.second : op.memory.registers[0], op.result, mask);
  const Mask done = run_memory(i, w, op.memory, mask);
  if (done != mask && op.returns)
    for_lanes(mask & ~done, [&](unsigned l) { std::memset(w.at<std::byte>(op.result) + l * op.memory.element, 0, op.memory.element); });
  if (w.stop == Stop::aborted) return nullptr;
  if (w.worker->undefined == nullptr || w.worker->undefined->lanes == 0) [[likely]] return &i + 1;
  atomic_undefined(w, op.memory, op.result);
  return op.returns ? follow(w, &i + 1) : &i + 1;
}

template <class T>
decltype(AtomicOp::apply) integer_op(Decoder& d, Op op) {
  switch (op) {
    case Op::add: return integer<Op::add, T>;
    case Op::min: return integer<Op::min, T>;
    case Op::max: return integer<Op::max, T>;
    case Op::inc: return integer<Op::inc, T>;
    case Op::dec: return integer<Op::dec, T>;
    case Op::and_: return integer<Op::and_, T>;
    case Op::or_: return integer<Op::or_, T>;
    case Op::xor_: return integer<Op::xor_, T>;
    case Op::exch: return integer<Op::exch, T>;
    case Op::cas: return integer<Op::cas, T>;
  }
  d.fail("no such operation");
}

void decode(Decoder& d, bool returns) {
  AtomicOp op;
  MemoryModifiers m;
  // Modifiers come in any order; the operation's name is no type, so the scan stops there and goes on behind it.
  const int which = d.take_one({"add", "min", "max", "inc", "dec", "and", "or", "xor", "exch", "cas"});
  if (which < 0) d.fail("needs an operation");
  op.op = static_cast<Op>(which);
  const bool noftz = d.take("noftz");
  m = memory_modifiers(d);
  const Type t = d.type();
  op.type = t;
  op.returns = returns;
  if (m.vector != 1 || m.cache != CacheOp::none) d.fail("vector and cache forms are not supported");
  if (m.via == Via::local || m.via == Via::constant || m.via == Via::param) d.fail("not in this state space");
  op.memory.kind = returns ? AccessKind::atomic : AccessKind::reduction;
  op.memory.via = m.via;
  op.memory.order = m.order == Order::weak ? Order::relaxed : m.order;
  op.memory.scope = m.scope == Scope::none ? Scope::gpu : m.scope;
  op.memory.element = static_cast<std::uint8_t>(bytes_of(t));
  op.memory.register_width = op.memory.element;
  op.memory.width = op.memory.element;
  const std::size_t first = returns ? 1 : 0, sources = op.op == Op::cas ? 2 : 1;
  if (op.op == Op::cas && !returns) d.fail("needs atom");
  d.end(first + 1 + sources, first + 2 + sources);
  if (d.count() == first + 2 + sources) {
    if (!m.cache_hint) d.fail("one operand too many");
    d.source(first + 1 + sources, Type::b64);
  }

  op.memory.merge = op.op == Op::exch || op.op == Op::cas ? Merge::replace : op.op == Op::and_ ? Merge::and_ : op.op == Op::or_ ? Merge::or_
                    : op.op == Op::xor_ ? Merge::xor_ : Merge::any;
  const bool minmax = op.op == Op::min || op.op == Op::max, logic = op.op == Op::and_ || op.op == Op::or_ || op.op == Op::xor_;
  const bool swap = op.op == Op::exch || op.op == Op::cas;
  const bool is_max = op.op == Op::max;
  auto need = [&](bool condition) { if (!condition) d.refuse_type(t); };
  switch (t) {
    case Type::u32: need(!logic && !swap); op.apply = integer_op<u32>(d, op.op); break;
    case Type::s32: need(op.op == Op::add || minmax); op.apply = integer_op<s32>(d, op.op); break;
    case Type::u64: need(op.op == Op::add || minmax); op.apply = integer_op<u64>(d, op.op); break;
    case Type::s64: need(minmax || op.op == Op::add); op.apply = integer_op<s64>(d, op.op); break;
    case Type::b32: need(logic || swap); op.apply = integer_op<u32>(d, op.op); break;
    case Type::b64: need(logic || swap); op.apply = integer_op<u64>(d, op.op); break;
    case Type::b16: need(op.op == Op::cas); op.apply = integer_op<u16>(d, op.op); break;
    case Type::f32: need(op.op == Op::add); op.apply = m.via == Via::shared ? add_float<false> : add_float<true>; break;
    case Type::f64: need(op.op == Op::add); op.apply = add_double; break;
    case Type::f16: need((op.op == Op::add && noftz) || minmax);
      op.apply = op.op == Op::add ? single<add_half<Half>> : is_max ? single<choose_half<Half, true>> : single<choose_half<Half, false>>; break;
    case Type::bf16: need((op.op == Op::add && noftz) || minmax);
      op.apply = op.op == Op::add ? single<add_half<Bfloat>> : is_max ? single<choose_half<Bfloat, true>> : single<choose_half<Bfloat, false>>; break;
    case Type::f16x2: need((op.op == Op::add && noftz) || minmax);
      op.apply = op.op == Op::add ? pair<add_half<Half>> : is_max ? pair<choose_half<Half, true>> : pair<choose_half<Half, false>>; break;
    case Type::bf16x2: need((op.op == Op::add && noftz) || minmax);
      op.apply = op.op == Op::add ? pair<add_half<Bfloat>> : is_max ? pair<choose_half<Bfloat, true>> : pair<choose_half<Bfloat, false>>; break;
    default: d.refuse_type(t);
  }
  const auto address = d.address(first);
  check_named_space(d, address, op.memory.via);
  if (op.memory.via == Via::local) d.fail("not in this state space");
  op.memory.base_width = static_cast<std::uint8_t>(address.width);
  if (address.width == 4 && op.memory.via != Via::shared) d.fail("a 32-bit address register");
  op.memory.registers[0] = d.source(first + 1, t);
  if (sources == 2) op.memory.registers[1] = op.second = d.source(first + 2, t);
  if (returns) op.result = d.destination(0, t);
  op.memory.transfer = transfer;
  op.memory.transfer_local = [](const MemoryOp&, Warp& w, const u64*, Mask, Shape) { w.worker->status = LaunchStatus::illegal_address; };
  if (op.memory.via != Via::shared) {
    d.program.communicates = true;
    d.program.stores.global = std::max(d.program.stores.global, op.memory.element);
  } else if (swap && returns) {
    d.program.waits_in_block = true;
  }
  if (is_float(t) || t == Type::f16x2 || t == Type::bf16x2) d.need_mode({false, 'n'});
  Inst& i = d.emit(atomic);
  i.a = address.base, i.imm = address.offset;
  i.data = keep_bytes(d, op);
  d.ends_block();
}

}  // namespace

std::span<const Opcode> atomic_opcodes() {
  static const Opcode table[] = {{"atom", [](Decoder& d) { decode(d, true); }, InstructionClass::atomic},
                                 {"red", [](Decoder& d) { decode(d, false); }, InstructionClass::atomic}};
  return table;
}

}  // namespace machine
