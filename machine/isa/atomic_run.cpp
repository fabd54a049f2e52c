// atom and red: read-modify-write in global, shared and generic memory.
#include "isa/atomic_run.hpp"

#include <algorithm>
#include <cstring>

#include "exec/real_reductions.hpp"
#include "exec/undefined.hpp"

namespace machine {
namespace {

using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;
using s32 = std::int32_t;
using s64 = std::int64_t;

// ---- what one lane does ------------------------------------------------------------------------------------------

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

template <AtomicKind K, class T>
u64 integer(u64 old, u64 operand, u64 second) {
  const T a = as<T>(old), b = as<T>(operand);
  switch (K) {
    case AtomicKind::add:
      return raw(static_cast<T>(static_cast<std::make_unsigned_t<T>>(a) + static_cast<std::make_unsigned_t<T>>(b)));
    case AtomicKind::min: return raw(std::min(a, b));
    case AtomicKind::max: return raw(std::max(a, b));
    case AtomicKind::inc: return raw(static_cast<T>(a >= b ? 0 : a + 1));
    case AtomicKind::dec: return raw(static_cast<T>(a == 0 || a > b ? b : a - 1));
    case AtomicKind::and_: return raw(static_cast<T>(a & b));
    case AtomicKind::or_: return raw(static_cast<T>(a | b));
    case AtomicKind::xor_: return raw(static_cast<T>(a ^ b));
    case AtomicKind::exch: return raw(b);
    case AtomicKind::cas: return raw(a == b ? as<T>(second) : a);
  }
  return old;
}

template <class T>
AtomicFunction integer_function(AtomicKind kind) {
  switch (kind) {
    case AtomicKind::add: return integer<AtomicKind::add, T>;
    case AtomicKind::min: return integer<AtomicKind::min, T>;
    case AtomicKind::max: return integer<AtomicKind::max, T>;
    case AtomicKind::inc: return integer<AtomicKind::inc, T>;
    case AtomicKind::dec: return integer<AtomicKind::dec, T>;
    case AtomicKind::and_: return integer<AtomicKind::and_, T>;
    case AtomicKind::or_: return integer<AtomicKind::or_, T>;
    case AtomicKind::xor_: return integer<AtomicKind::xor_, T>;
    case AtomicKind::exch: return integer<AtomicKind::exch, T>;
    case AtomicKind::cas: return integer<AtomicKind::cas, T>;
  }
  return nullptr;
}

// A function of two values, on the lowest bits, or on two halves side by side.
template <class T, T (*F)(T, T)>
u64 single(u64 old, u64 operand, u64) {
  return F(static_cast<T>(old), static_cast<T>(operand));
}
template <u16 (*F)(u16, u16)>
u64 pair(u64 old, u64 operand, u64) {
  return static_cast<u64>(F(static_cast<u16>(old >> 16), static_cast<u16>(operand >> 16))) << 16 |
         F(static_cast<u16>(old), static_cast<u16>(operand));
}

template <class H>
AtomicFunction half_function(AtomicKind kind, bool pairs) {
  switch (kind) {
    case AtomicKind::add: return pairs ? pair<add_half<H>> : single<u16, add_half<H>>;
    case AtomicKind::min: return pairs ? pair<choose_half<H, false>> : single<u16, choose_half<H, false>>;
    case AtomicKind::max: return pairs ? pair<choose_half<H, true>> : single<u16, choose_half<H, true>>;
    default: return nullptr;
  }
}

// ---- what a warp does --------------------------------------------------------------------------------------------

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

// A compare-and-swap where undefined values are followed.
Mask run_swap(const Inst& i, Warp& w, const AtomicOp& op, Mask mask) {
  Comparand comparand;
  note_comparand(comparand, w, op.memory, mask);
  const Mask done = run_memory(i, w, op.memory, mask);
  swap_undefined(i, w, op.memory, comparand, op.result, done);
  return done;
}

}  // namespace

AtomicFunction atomic_function(AtomicKind kind, Type type, bool noftz, bool shared) {
  using enum AtomicKind;
  const bool sums = kind == add, chooses = kind == min || kind == max, counts = kind == inc || kind == dec;
  const bool swaps = kind == exch || kind == cas;
  const bool bitwise = kind == and_ || kind == or_ || kind == xor_ || swaps;
  switch (type) {
    case Type::u32: return sums || chooses || counts ? integer_function<u32>(kind) : nullptr;
    case Type::s32: return sums || chooses ? integer_function<s32>(kind) : nullptr;
    case Type::u64: return sums || chooses ? integer_function<u64>(kind) : nullptr;
    case Type::s64: return sums || chooses ? integer_function<s64>(kind) : nullptr;
    case Type::b16: return kind == cas ? integer_function<u16>(kind) : nullptr;
    case Type::b32: return bitwise ? integer_function<u32>(kind) : nullptr;
    case Type::b64: return bitwise ? integer_function<u64>(kind) : nullptr;
    case Type::f32: return !sums ? nullptr : shared ? single<u32, add_f32<false>> : single<u32, add_f32<true>>;
    case Type::f64: return sums ? single<u64, add_f64> : nullptr;
    case Type::f16:
    case Type::f16x2: return sums && !noftz ? nullptr : half_function<Half>(kind, type == Type::f16x2);
    case Type::bf16:
    case Type::bf16x2: return sums && !noftz ? nullptr : half_function<Bfloat>(kind, type == Type::bf16x2);
    default: return nullptr;
  }
}

void transfer_atomic(const MemoryOp& memory, Warp& w, const u64* address, Mask mask, Shape) {
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
void transfer_atomic_wide(const MemoryOp& memory, Warp& w, const u64* address, Mask mask, Shape) {
  const AtomicOp& op = reinterpret_cast<const AtomicOp&>(memory);
  bool changed = false;
  const auto lane = [&](unsigned l) {
    void* at = reinterpret_cast<void*>(address[l]);
    u64 old[2], value[2];
    std::memcpy(old, at, sizeof old);
    const bool swaps = op.kind == AtomicKind::exch || (old[0] == w.at<const u64>(memory.registers[0])[l] &&
                                                       old[1] == w.at<const u64>(memory.registers[1])[l]);
    const Slot* from = op.kind == AtomicKind::exch ? memory.registers : op.second;
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

const Inst* atomic(const Inst& i, Warp& w, Mask mask) {
  mask &= w.active;
  if (mask == 0) return &i + 1;
  const AtomicOp& op = *static_cast<const AtomicOp*>(i.data);
  if (w.follows) [[unlikely]]
    before_atomic(i, w, op.memory, op.second[0] != 0 ? op.second : op.memory.registers, op.result, mask);
  const bool follows = op.kind == AtomicKind::cas && w.worker->undefined != nullptr;
  const Mask done = follows ? run_swap(i, w, op, mask) : run_memory(i, w, op.memory, mask);
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

}  // namespace machine
