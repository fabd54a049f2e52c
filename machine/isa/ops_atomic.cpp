// atom and red: read-modify-write in global, shared and generic memory.
#include <algorithm>
#include <cstring>

#include "exec/real.hpp"
#include "exec/undefined.hpp"
#include "isa/families.hpp"
#include "isa/memory_decode.hpp"

namespace machine {
namespace {

using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;
using s32 = std::int32_t;
using s64 = std::int64_t;

enum class Op : std::uint8_t { add, min, max, inc, dec, and_, or_, xor_, exch, cas };

// MemoryOp with what an atomic needs besides: second operands and results. registers holds the operands.
struct AtomicOp {
  MemoryOp memory;
  Op op = Op::add;
  Slot second[2] = {}, result[8] = {};  // second operands of a compare-and-swap; two of 128 bits
  bool returns = false;
  u64 (*apply)(u64 old, u64 operand, u64 second) = nullptr;
};

template <class T>
u64 raw(T v) {
  u64 r = 0;
  std::memcpy(&r, &v, sizeof v);
  return r;
}
template <class T>
T as(u64 v) {
  T r;
  std::memcpy(&r, &v, sizeof r);
  return r;
}

template <Op O, class T>
u64 integer(u64 old, u64 operand, u64 second) {
  const T a = as<T>(old), b = as<T>(operand);
  switch (O) {
    case Op::add:
      return raw(static_cast<T>(static_cast<std::make_unsigned_t<T>>(a) + static_cast<std::make_unsigned_t<T>>(b)));
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
u16 add_half(u16 a, u16 b) {
  return H::narrow(H::widen(a) + H::widen(b));
}
template <class H, bool Max>
u16 choose_half(u16 a, u16 b) {
  const float x = H::widen(a), y = H::widen(b);
  if (x != x) return y != y ? kNan16 : b;
  if (y != y) return a;
  const bool first = Max ? (x > y || (x == y && !(a & 0x8000))) : (x < y || (x == y && (a & 0x8000)));
  return first ? a : b;
}
template <u16 (*F)(u16, u16)>
u64 single(u64 old, u64 operand, u64) {
  return F(static_cast<u16>(old), static_cast<u16>(operand));
}
template <u16 (*F)(u16, u16)>
u64 pair(u64 old, u64 operand, u64) {
  return static_cast<u64>(F(static_cast<u16>(old >> 16), static_cast<u16>(operand >> 16))) << 16 |
         F(static_cast<u16>(old), static_cast<u16>(operand));
}

u64 read_slot(const Warp& w, Slot s, unsigned bytes, unsigned lane) {
  return bytes == 2 ? w.at<const u16>(s)[lane] : bytes == 4 ? w.at<const u32>(s)[lane] : w.at<const u64>(s)[lane];
}

// Lanes one after the other, in an order that PTX leaves open: two lanes on one address see each other.
template <class F>
void in_some_order(Warp& w, const u64* address, Mask mask, const bool& changed, F lane) {
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

void transfer(const MemoryOp& memory, Warp& w, const u64* address, Mask mask, Shape) {
  const AtomicOp& op = reinterpret_cast<const AtomicOp&>(memory);
  const unsigned bytes = memory.element;
  bool changed = false;
  const auto lane = [&](unsigned l) {
    for (unsigned c = 0; c < memory.components; ++c) {
      void* at = reinterpret_cast<void*>(address[l] + u64{c} * bytes);
      u64 old = 0;
      std::memcpy(&old, at, bytes);
      const u64 value = op.apply(old, read_slot(w, memory.registers[c], bytes, l),
                                 op.second[0] != 0 ? read_slot(w, op.second[0], bytes, l) : 0);
      changed |= value != old;
      std::memcpy(at, &value, bytes);
      if (!op.returns) continue;
      if (bytes == 2) w.at<u16>(op.result[c])[l] = static_cast<u16>(old);
      else if (bytes == 4) w.at<u32>(op.result[c])[l] = static_cast<u32>(old);
      else w.at<u64>(op.result[c])[l] = old;
    }
  };
  in_some_order(w, address, mask, changed, lane);
}

// Exchange and compare-and-swap of 128 bits, which are one value.
void transfer_wide(const MemoryOp& memory, Warp& w, const u64* address, Mask mask, Shape) {
  const AtomicOp& op = reinterpret_cast<const AtomicOp&>(memory);
  bool changed = false;
  const auto lane = [&](unsigned l) {
    void* at = reinterpret_cast<void*>(address[l]);
    u64 old[2], value[2];
    std::memcpy(old, at, sizeof old);
    const bool swaps = op.op == Op::exch || (old[0] == w.at<const u64>(memory.registers[0])[l] &&
                                             old[1] == w.at<const u64>(memory.registers[1])[l]);
    const Slot* from = op.op == Op::exch ? memory.registers : op.second;
    for (unsigned c = 0; c < 2; ++c) {
      value[c] = swaps ? w.at<const u64>(from[c])[l] : old[c];
      changed |= value[c] != old[c];
    }
    for (unsigned c = 0; c < 2; ++c)
      if (op.returns) w.at<u64>(op.result[c])[l] = old[c];
    std::memcpy(at, value, sizeof value);
  };
  in_some_order(w, address, mask, changed, lane);
}

// A compare-and-swap where undefined values are followed.
Mask run_swap(const Inst& i, Warp& w, const AtomicOp& op, Mask mask) {
  Comparand comparand;
  note_comparand(comparand, w, op.memory, mask);
  const Mask done = run_memory(i, w, op.memory, mask);
  swap_undefined(i, w, op.memory, comparand, op.result, done);
  return done;
}

const Inst* atomic(const Inst& i, Warp& w, Mask mask) {
  mask &= w.active;
  if (mask == 0) return &i + 1;
  const AtomicOp& op = *static_cast<const AtomicOp*>(i.data);
  if (w.follows) [[unlikely]]
    before_atomic(i, w, op.memory, op.second[0] != 0 ? op.second : op.memory.registers, op.result, mask);
  const Mask done =
      op.op == Op::cas && w.worker->undefined != nullptr ? run_swap(i, w, op, mask) : run_memory(i, w, op.memory, mask);
  if (done != mask && op.returns)
    for (unsigned c = 0; c < op.memory.components; ++c)
      for_lanes(mask & ~done, [&](unsigned l) {
        std::memset(w.at<std::byte>(op.result[c]) + l * op.memory.element, 0, op.memory.element);
      });
  if (w.stop == Stop::aborted) return nullptr;
  if (w.worker->undefined == nullptr || w.worker->undefined->lanes == 0) [[likely]]
    return &i + 1;
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
  if (!returns && d.take("async")) return decode_reduce_async(d);
  AtomicOp op;
  MemoryModifiers m;
  // Modifiers come in any order; the operation's name is no type, so the scan stops there and goes on behind it.
  const int which = d.take_one({"add", "min", "max", "inc", "dec", "and", "or", "xor", "exch", "cas"});
  if (which < 0) d.fail("needs an operation");
  op.op = static_cast<Op>(which);
  const bool noftz = d.take("noftz");
  m = memory_modifiers(d);
  const Type t = d.type();
  op.returns = returns;
  if (m.cache != CacheOp::none) d.fail("takes no cache operator");
  if (m.via == Via::local || m.via == Via::constant || m.via == Via::param) d.fail("not in this state space");
  op.memory.kind = returns ? AccessKind::atomic : AccessKind::reduction;
  op.memory.via = m.via;
  op.memory.order = m.order == Order::weak ? Order::relaxed : m.order;
  op.memory.scope = m.scope == Scope::none ? Scope::gpu : m.scope;
  const bool wide = t == Type::b128;
  op.memory.element = wide ? 8 : static_cast<std::uint8_t>(bytes_of(t));
  op.memory.components = static_cast<std::uint8_t>(wide ? 2 : m.vector);
  op.memory.register_width = op.memory.element;
  op.memory.width = op.memory.element * op.memory.components;
  if (m.vector != 1) {
    const bool half = t == Type::f16 || t == Type::bf16, pairs = t == Type::f16x2 || t == Type::bf16x2;
    if (!half && !(t == Type::f32 && m.vector <= 4) && !(pairs && m.vector <= 4)) d.fail("no such vector");
    if (m.via != Via::global) d.fail("a vector needs .global");
  }
  const std::size_t first = returns ? 1 : 0, sources = op.op == Op::cas ? 2 : 1;
  if (op.op == Op::cas && !returns) d.fail("needs atom");
  d.end(first + 1 + sources, first + 2 + sources);
  if (d.count() == first + 2 + sources) {
    if (!m.cache_hint) d.fail("one operand too many");
    d.source(first + 1 + sources, Type::b64);
  }

  op.memory.merge = op.op == Op::exch || op.op == Op::cas ? Merge::replace
                    : op.op == Op::and_                   ? Merge::and_
                    : op.op == Op::or_                    ? Merge::or_
                    : op.op == Op::xor_                   ? Merge::xor_
                                                          : Merge::any;
  const bool minmax = op.op == Op::min || op.op == Op::max,
             logic = op.op == Op::and_ || op.op == Op::or_ || op.op == Op::xor_;
  const bool swap = op.op == Op::exch || op.op == Op::cas;
  const bool is_max = op.op == Op::max;
  auto need = [&](bool condition) {
    if (!condition) d.refuse_type(t);
  };
  switch (t) {
    case Type::u32:
      need(!logic && !swap);
      op.apply = integer_op<u32>(d, op.op);
      break;
    case Type::s32:
      need(op.op == Op::add || minmax);
      op.apply = integer_op<s32>(d, op.op);
      break;
    case Type::u64:
      need(op.op == Op::add || minmax);
      op.apply = integer_op<u64>(d, op.op);
      break;
    case Type::s64:
      need(minmax || op.op == Op::add);
      op.apply = integer_op<s64>(d, op.op);
      break;
    case Type::b32:
      need(logic || swap);
      op.apply = integer_op<u32>(d, op.op);
      break;
    case Type::b64:
      need(logic || swap);
      op.apply = integer_op<u64>(d, op.op);
      break;
    case Type::b128: need(swap); break;
    case Type::b16:
      need(op.op == Op::cas);
      op.apply = integer_op<u16>(d, op.op);
      break;
    case Type::f32:
      need(op.op == Op::add);
      op.apply = m.via == Via::shared ? add_float<false> : add_float<true>;
      break;
    case Type::f64:
      need(op.op == Op::add);
      op.apply = add_double;
      break;
    case Type::f16:
      need((op.op == Op::add && noftz) || minmax);
      op.apply = op.op == Op::add ? single<add_half<Half>>
                 : is_max         ? single<choose_half<Half, true>>
                                  : single<choose_half<Half, false>>;
      break;
    case Type::bf16:
      need((op.op == Op::add && noftz) || minmax);
      op.apply = op.op == Op::add ? single<add_half<Bfloat>>
                 : is_max         ? single<choose_half<Bfloat, true>>
                                  : single<choose_half<Bfloat, false>>;
      break;
    case Type::f16x2:
      need((op.op == Op::add && noftz) || minmax);
      op.apply = op.op == Op::add ? pair<add_half<Half>>
                 : is_max         ? pair<choose_half<Half, true>>
                                  : pair<choose_half<Half, false>>;
      break;
    case Type::bf16x2:
      need((op.op == Op::add && noftz) || minmax);
      op.apply = op.op == Op::add ? pair<add_half<Bfloat>>
                 : is_max         ? pair<choose_half<Bfloat, true>>
                                  : pair<choose_half<Bfloat, false>>;
      break;
    default: d.refuse_type(t);
  }
  const auto address = d.address(first);
  check_named_space(d, address, op.memory.via);
  if (op.memory.via == Via::local) d.fail("not in this state space");
  op.memory.base_width = static_cast<std::uint8_t>(address.width);
  if (address.width == 4 && op.memory.via != Via::shared) d.fail("a 32-bit address register");
  const Type element = wide ? Type::b64 : t;
  const auto parts = [&](std::size_t index) {
    const Operand& o = d.operand(index);
    if (wide) {
      const auto halves = d.halves(o);
      return std::vector<Operand>(halves.begin(), halves.end());
    }
    const bool list = o.kind == Operand::list && !o.piped;
    if (list != (m.vector != 1) || (list && o.parts.size() != m.vector))
      d.fail("the vector and its registers differ in length");
    return list ? o.parts : std::vector<Operand>{o};
  };
  unsigned at = 0;
  for (const auto& p : parts(first + 1)) op.memory.registers[at++] = d.source(p, element);
  at = 0;
  if (sources == 2)
    for (const auto& p : parts(first + 2)) op.second[at++] = d.source(p, element);
  if (sources == 2 && !wide) op.memory.registers[1] = op.second[0];
  at = 0;
  if (returns && d.operand(0).kind != Operand::sink)
    for (const auto& p : parts(0)) op.result[at++] = d.destination(p, element);
  else if (returns)
    for (; at < op.memory.components; ++at) op.result[at] = d.destination(d.operand(0), element);
  op.memory.transfer = wide ? transfer_wide : transfer;
  op.memory.transfer_local = [](const MemoryOp&, Warp& w, const u64*, Mask, Shape) {
    w.worker->status = LaunchStatus::illegal_address;
  };
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
