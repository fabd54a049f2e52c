// ld and st in every space, with vectors, cache operators, order and scope; prefetch, discard and applypriority.
#include <algorithm>

#include "exec/memory_access.hpp"
#include "exec/undefined.hpp"
#include "isa/families.hpp"
#include "isa/memory_decode.hpp"

namespace machine {
namespace {

using u8 = std::uint8_t;
using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;

// ---- transfers ---------------------------------------------------------------------------------------------------

template <class E, class R, unsigned Stride>
void load_run(R* d, u64 from) {
  const E* p = reinterpret_cast<const E*>(from);
  if constexpr (sizeof(E) == sizeof(R) && Stride == 1) {
    std::memcpy(d, p, sizeof(R) * kWarp);
  } else {
#pragma GCC ivdep
    for (unsigned l = 0; l < kWarp; ++l) d[l] = static_cast<R>(p[l * Stride]);
  }
}

template <class E, class R>
void load(const MemoryOp& op, Warp& w, const u64* address, Mask mask, Shape shape) {
  for (unsigned c = 0; c < op.components; ++c) {
    R* d = w.at<R>(op.registers[c]);
    const u64 offset = c * sizeof(E);
    if (shape == Shape::contiguous) {
      switch (op.components) {
        case 1: load_run<E, R, 1>(d, address[0] + offset); break;
        case 2: load_run<E, R, 2>(d, address[0] + offset); break;
        case 4: load_run<E, R, 4>(d, address[0] + offset); break;
        default: load_run<E, R, 8>(d, address[0] + offset); break;
      }
    } else if (shape == Shape::uniform) {
      const R v = static_cast<R>(*reinterpret_cast<const E*>(address[std::countr_zero(mask)] + offset));
      each_lane(d, mask, [=](unsigned) { return v; });
    } else if (mask == kFullMask) {
      for (unsigned l = 0; l < kWarp; ++l) d[l] = static_cast<R>(*reinterpret_cast<const E*>(address[l] + offset));
    } else {
      for_lanes(mask, [&](unsigned l) { d[l] = static_cast<R>(*reinterpret_cast<const E*>(address[l] + offset)); });
    }
  }
}

template <class E, class R, unsigned Stride>
void store_run(const R* s, u64 to) {
  E* p = reinterpret_cast<E*>(to);
  if constexpr (sizeof(E) == sizeof(R) && Stride == 1) {
    std::memcpy(p, s, sizeof(R) * kWarp);
  } else {
#pragma GCC ivdep
    for (unsigned l = 0; l < kWarp; ++l) p[l * Stride] = static_cast<E>(s[l]);
  }
}

template <class E, class R>
void store(const MemoryOp& op, Warp& w, const u64* address, Mask mask, Shape shape) {
  // Lanes that write the same place: the highest lane wins, for every component alike.
  for (unsigned c = 0; c < op.components; ++c) {
    const R* s = w.at<const R>(op.registers[c]);
    const u64 offset = c * sizeof(E);
    if (shape == Shape::contiguous) {
      switch (op.components) {
        case 1: store_run<E, R, 1>(s, address[0] + offset); break;
        case 2: store_run<E, R, 2>(s, address[0] + offset); break;
        case 4: store_run<E, R, 4>(s, address[0] + offset); break;
        default: store_run<E, R, 8>(s, address[0] + offset); break;
      }
    } else {
      for_lanes(mask, [&](unsigned l) { *reinterpret_cast<E*>(address[l] + offset) = static_cast<E>(s[l]); });
    }
  }
}

// Local memory is interleaved by word: an element of 8 bytes lies in two words.
template <class E, class R>
void load_local(const MemoryOp& op, Warp& w, const u64* offset, Mask mask, Shape shape) {
  for (unsigned c = 0; c < op.components; ++c) {
    R* d = w.at<R>(op.registers[c]);
    const u64 shift = c * sizeof(E);
    if constexpr (sizeof(E) == 4 && sizeof(R) == 4) {
      if (shape == Shape::uniform && mask == kFullMask) {
        std::memcpy(d, local_word(w, offset[0] + shift, 0), 128);
        continue;
      }
    }
    for_lanes(mask, [&](unsigned l) {
      if constexpr (sizeof(E) == 8) {
        u32 low, high;
        std::memcpy(&low, local_word(w, offset[l] + shift, l), 4);
        std::memcpy(&high, local_word(w, offset[l] + shift + 4, l), 4);
        d[l] = static_cast<R>(u64{high} << 32 | low);
      } else {
        E v;
        std::memcpy(&v, local_word(w, offset[l] + shift, l), sizeof v);
        d[l] = static_cast<R>(v);
      }
    });
  }
}
template <class E, class R>
void store_local(const MemoryOp& op, Warp& w, const u64* offset, Mask mask, Shape shape) {
  for (unsigned c = 0; c < op.components; ++c) {
    const R* s = w.at<const R>(op.registers[c]);
    const u64 shift = c * sizeof(E);
    if constexpr (sizeof(E) == 4 && sizeof(R) == 4) {
      if (shape == Shape::uniform && mask == kFullMask) {
        std::memcpy(local_word(w, offset[0] + shift, 0), s, 128);
        continue;
      }
    }
    for_lanes(mask, [&](unsigned l) {
      if constexpr (sizeof(E) == 8) {
        const u32 low = static_cast<u32>(s[l]), high = static_cast<u32>(static_cast<u64>(s[l]) >> 32);
        std::memcpy(local_word(w, offset[l] + shift, l), &low, 4);
        std::memcpy(local_word(w, offset[l] + shift + 4, l), &high, 4);
      } else {
        const E v = static_cast<E>(s[l]);
        std::memcpy(local_word(w, offset[l] + shift, l), &v, sizeof v);
      }
    });
  }
}

template <class E>
void choose_load(MemoryOp& op) {
  if (op.register_width == 2) {
    if constexpr (sizeof(E) <= 2) op.transfer = load<E, u16>, op.transfer_local = load_local<E, u16>;
  } else if (op.register_width == 4) {
    if constexpr (sizeof(E) <= 4) op.transfer = load<E, u32>, op.transfer_local = load_local<E, u32>;
  } else {
    op.transfer = load<E, u64>, op.transfer_local = load_local<E, u64>;
  }
}
template <class E>
void choose_store(MemoryOp& op) {
  if (op.register_width == 2) {
    if constexpr (sizeof(E) <= 2) op.transfer = store<E, u16>, op.transfer_local = store_local<E, u16>;
  } else if (op.register_width == 4) {
    if constexpr (sizeof(E) <= 4) op.transfer = store<E, u32>, op.transfer_local = store_local<E, u32>;
  } else {
    op.transfer = store<E, u64>, op.transfer_local = store_local<E, u64>;
  }
}

// ---- handlers ----------------------------------------------------------------------------------------------------

const Inst* memory(const Inst& i, Warp& w, Mask mask) {
  mask &= w.active;
  if (mask == 0) return &i + 1;
  const MemoryOp& op = *static_cast<const MemoryOp*>(i.data);
  if (w.follows) [[unlikely]]
    before_memory(i, w, op, mask);
  const Mask done = run_memory(i, w, op, mask);
  if (done != mask && op.kind == AccessKind::load) [[unlikely]] {
    // Lanes that were refused read zero.
    const Mask refused = mask & ~done;
    for (unsigned c = 0; c < op.components; ++c)
      for_lanes(refused, [&](unsigned l) {
        std::memset(w.at<std::byte>(op.registers[c]) + l * op.register_width, 0, op.register_width);
      });
  }
  if (w.stop == Stop::aborted) return nullptr;
  Undefined* undefined = w.worker->undefined.get();
  if (undefined == nullptr || undefined->lanes == 0) [[likely]]
    return &i + 1;
  if (op.kind == AccessKind::store) {
    undefined->lanes = 0;
    return &i + 1;
  }
  loaded_undefined(w, op);
  return follow(w, &i + 1);
}

// The parameter block of a launch, at a constant offset: the same for all lanes, and never told.
template <class R>
const Inst* load_param(const Inst& i, Warp& w, Mask mask) {
  const u32 element = i.extra & 0xff;
  const bool sign = i.extra >> 8 & 1;
  u64 raw = 0;
  std::memcpy(&raw, w.worker->params + i.imm, element);
  if (sign && element < 8) {
    const unsigned up = 64 - 8 * element;
    raw = static_cast<u64>(static_cast<std::int64_t>(raw << up) >> up);
  }
  const R value = static_cast<R>(raw);
  each_lane(w.at<R>(i.d), mask, [=](unsigned) { return value; });
  return &i + 1;
}

// Parameters of device functions: word-interleaved in the frame.
const Inst* load_area(const Inst& i, Warp& w, Mask mask) {
  const MemoryOp& op = *static_cast<const MemoryOp*>(i.data);
  std::byte* keep = w.local;
  w.local = w.at<std::byte>(i.a);
  for (unsigned l = 0; l < kWarp; ++l) w.address()[l] = static_cast<u64>(i.imm);
  op.transfer_local(op, w, w.address(), mask & w.active, Shape::scattered);
  w.local = keep;
  if (w.follows) [[unlikely]]
    area_undefined(w, op, i.a, i.imm, mask & w.active);
  return &i + 1;
}

}  // namespace

void prepare_element(Decoder& d, MemoryOp& op, Type t) {
  const bool store = op.kind == AccessKind::store;
  const bool sign = op.sign = is_signed(t);
  switch (op.element) {
    case 1: store ? choose_store<u8>(op) : sign ? choose_load<std::int8_t>(op) : choose_load<u8>(op); break;
    case 2: store ? choose_store<u16>(op) : sign ? choose_load<std::int16_t>(op) : choose_load<u16>(op); break;
    case 4: store ? choose_store<u32>(op) : sign ? choose_load<std::int32_t>(op) : choose_load<u32>(op); break;
    case 8: store ? choose_store<u64>(op) : choose_load<u64>(op); break;
    default: d.refuse_type(t);
  }
  if (op.transfer == nullptr) d.fail("the register is narrower than the access");
}

namespace {

InstructionClass class_of(const MemoryOp& op, bool store) {
  switch (op.via) {
    case Via::shared: return store ? InstructionClass::store_shared : InstructionClass::load_shared;
    case Via::local: return store ? InstructionClass::store_local : InstructionClass::load_local;
    case Via::constant: return InstructionClass::load_constant;
    case Via::param: return InstructionClass::load_param;
    default: return store ? InstructionClass::store_global : InstructionClass::load_global;
  }
}

void load_or_store(Decoder& d, bool store) {
  if (store && d.take("async")) return decode_store_async(d);
  MemoryOp op;
  op.kind = store ? AccessKind::store : AccessKind::load;
  const MemoryModifiers m = memory_modifiers(d);
  op.via = m.via;
  op.order = m.order;
  op.scope = m.scope;
  op.cache = m.cache;
  op.components = static_cast<std::uint8_t>(m.vector);
  const Type t = d.type();
  const bool wide = t == Type::b128;  // two components of 64 bits
  op.element = wide ? 8 : static_cast<std::uint8_t>(bytes_of(t));
  if (wide) op.components = static_cast<std::uint8_t>(2 * op.components);
  if (t == Type::pred || op.element == 0) d.refuse_type(t);
  if (!is_integer(t) && !is_bits(t) && t != Type::f32 && t != Type::f64 && !wide) d.refuse_type(t);
  op.width = op.element * op.components;
  if (op.width > 32) d.fail("an access of more than 32 bytes");
  const std::size_t at = store ? 0 : 1, value = store ? 1 : 0;
  // A cache-policy operand may follow.
  d.end(m.cache_hint ? 3 : 2);
  if (m.cache_hint) d.source(2, Type::b64);
  const Operand& operand = d.operand(value);
  std::vector<Operand> parts;
  if (operand.kind == Operand::list) parts = operand.parts;
  else parts.push_back(operand);
  if (wide) {
    std::vector<Operand> halves;
    for (const auto& p : parts)
      for (const auto& half : d.halves(p)) halves.push_back(half);
    parts = std::move(halves);
  }
  if (parts.size() != op.components) d.fail("the vector and its registers differ in length");
  const Type element = wide ? Type::b64 : t;
  unsigned width = 0;
  for (std::size_t k = 0; k < parts.size(); ++k) {
    unsigned this_width = 0;
    op.registers[k] =
        store ? d.wide_source(parts[k], element, this_width) : d.wide_destination(parts[k], element, this_width);
    if (k != 0 && this_width != width) d.fail("registers of different widths in one vector");
    width = this_width;
  }
  op.register_width = static_cast<std::uint8_t>(width);
  prepare_element(d, op, element);

  const auto address = d.address(at);
  const auto& text = d.operand(at).text;
  // A call's argument, or a device function's own parameter
  if (op.via == Via::param || (address.variable != nullptr && address.variable->kind == Variable::param_area)) {
    d.klass(InstructionClass::load_param);
    if (address.variable == nullptr) {
      if (store) d.fail("a store to .param by register");
      op.via = Via::global;  // the parameter block lies in global memory; reading it by address is checked there
      op.base_width = static_cast<std::uint8_t>(address.width);
      Inst& i = d.emit(memory);
      i.a = address.base, i.imm = address.offset;
      i.data = keep_bytes(d, op);
      return;
    }
    if (address.variable->kind == Variable::param_area) {
      const ParamArea* area = d.area(text);
      if (address.offset < 0 || address.offset + op.width > area->bytes + 3u)
        d.fail("access outside parameter '" + std::string(text) + "'");
      Inst& i = d.emit(load_area);
      i.a = area->slot, i.imm = address.offset;
      i.data = keep_bytes(d, op);
      return;
    }
    if (address.variable->kind != Variable::kernel_param || store)
      d.fail("'" + std::string(text) + "' is no parameter");
    if (address.offset < 0 ||
        static_cast<u64>(address.offset) + op.width > address.variable->address + address.variable->size)
      d.fail("access outside parameter '" + std::string(text) + "'");
    for (unsigned k = 0; k < op.components; ++k) {
      Inst& i = d.emit(width == 2 ? load_param<u16> : width == 4 ? load_param<u32> : load_param<u64>);
      i.d = op.registers[k];
      d.follow(FlowKind::computes);
      i.imm = address.offset + static_cast<std::int64_t>(k * op.element);
      i.extra = op.element | (is_signed(t) ? 1u << 8 : 0);
    }
    return;
  }
  check_named_space(d, address, op.via);
  if (store && op.via == Via::constant) d.fail("a store to constant memory");
  Slot base = address.base;
  op.base_width = static_cast<std::uint8_t>(address.width);
  if (op.base_width == 4 && (op.via == Via::global || op.via == Via::generic)) d.fail("a 32-bit address register");
  if (address.variable != nullptr && address.variable->kind == Variable::local && !d.function.is_kernel)
    base = d.local_base();
  emit_access(d, op, base, address.offset);
}

const Inst* nothing(const Inst& i, Warp&, Mask) { return &i + 1; }

// A hint: the address is looked at by nobody.
void prefetch(Decoder& d) {
  if (d.take("tensormap")) {
    d.take_one({"param", "param::entry", "const"});
    d.end(1);
    d.address(0);
    d.emit(nothing);
    return;
  }
  d.take_one({"global", "local"});
  if (d.take_one({"L2::evict_last", "L2::evict_normal", "L1", "L2"}) < 0) d.fail("needs a level");
  d.end(1);
  d.address(0);
  d.emit(nothing);
}
// Of a whole cache line of 128 bytes: discard and applypriority.
void line_hint(Decoder& d, std::string_view level) {
  d.take("global");
  if (!d.take(level)) d.fail("needs ." + std::string(level));
  d.end(2);
  d.address(0);
  if (d.immediate(1) != 128) d.fail("the size must be 128");
  d.emit(nothing);
}
void prefetchu(Decoder& d) {
  if (!d.take("L1")) d.fail("needs .L1");
  d.end(1);
  d.address(0);
  d.emit(nothing);
}
// createpolicy gives an opaque cache policy, which nothing here looks at.
void createpolicy(Decoder& d) {
  const int what = d.take_one({"fractional", "range", "cvt"});
  if (what < 0) d.fail("needs .fractional, .range or .cvt");
  if (what == 1) d.take("global");
  if (what == 2 ? !d.take("L2")
                : d.take_one({"L2::evict_last", "L2::evict_normal", "L2::evict_first", "L2::evict_unchanged"}) < 0)
    d.fail("needs a priority");
  if (what != 2) d.take_one({"L2::evict_first", "L2::evict_unchanged"});  // of the rest
  d.type({Type::b64});
  d.end(what == 1 ? 4 : what == 2 ? 2 : 1, what == 1 ? 4 : 2);
  if (what == 0 && d.count() == 2) d.source(1, Type::f32);
  if (what == 1) d.address(1), d.source(2, Type::b32), d.source(3, Type::b32);
  if (what == 2) d.source(1, Type::b64);
  const Slot r = d.destination(0, Type::b64);
  d.emit([](const Inst& i, Warp& w, Mask mask) -> const Inst* {
     each_lane(w.at<u64>(i.d), mask, [](unsigned) { return u64{0}; });
     return &i + 1;
   }).d = r;
}

}  // namespace

void emit_access(Decoder& d, const MemoryOp& op, Slot base, std::int64_t offset) {
  const bool store = op.kind == AccessKind::store;
  if (store) {
    StoreBytes& widest = d.program.stores;
    if (op.via == Via::global || op.via == Via::generic) widest.global = std::max(widest.global, op.element);
    if (op.via == Via::shared || op.via == Via::generic) widest.shared = std::max(widest.shared, op.element);
    if (op.via == Via::local || op.via == Via::generic) widest.local = std::max(widest.local, op.element);
  }
  const bool strong = op.order != Order::weak;
  if (strong && (op.via == Via::global || op.via == Via::generic)) d.program.communicates = true;
  if (strong && op.via == Via::shared && !store) d.program.waits_in_block = true;
  d.klass(class_of(op, store));
  Inst& i = d.emit(memory);
  i.a = base, i.imm = offset;
  i.data = keep_bytes(d, op);
  if (strong) d.ends_block();
}

MemoryModifiers memory_modifiers(Decoder& d) {
  MemoryModifiers m;
  bool space = false, order = false;
  while (!d.next().empty() && type_of(d.next()) == Type::none) {
    const auto word = d.next();
    auto set_order = [&](Order o) {
      if (m.order == Order::mmio && o == Order::relaxed) return;  // .mmio.relaxed is one order
      if (order) d.fail("two orders");
      m.order = o, order = true;
    };
    auto set_space = [&](Via v) {
      if (space) d.fail("two state spaces");
      m.via = v, space = true;
    };
    if (word == "global") set_space(Via::global);
    else if (word == "shared" || word == "shared::cta" || word == "shared::cluster") set_space(Via::shared);
    else if (word == "local") set_space(Via::local);
    else if (word == "const") set_space(Via::constant);
    else if (word == "param" || word == "param::entry" || word == "param::func") set_space(Via::param);
    else if (word == "weak") set_order(Order::weak);
    else if (word == "volatile") set_order(Order::volatile_);
    else if (word == "relaxed") set_order(Order::relaxed);
    else if (word == "acquire") set_order(Order::acquire);
    else if (word == "release") set_order(Order::release);
    else if (word == "acq_rel") set_order(Order::acq_rel);
    else if (word == "mmio") {
      if (!order) m.order = Order::mmio, order = true;
    } else if (word == "cta") m.scope = Scope::cta;
    else if (word == "cluster") m.scope = Scope::cluster;
    else if (word == "gpu") m.scope = Scope::gpu;
    else if (word == "sys") m.scope = Scope::sys;
    else if (word == "ca") m.cache = CacheOp::ca;
    else if (word == "cg") m.cache = CacheOp::cg;
    else if (word == "cs") m.cache = CacheOp::cs;
    else if (word == "lu") m.cache = CacheOp::lu;
    else if (word == "cv") m.cache = CacheOp::cv;
    else if (word == "wb") m.cache = CacheOp::wb;
    else if (word == "wt") m.cache = CacheOp::wt;
    else if (word == "nc") m.cache = CacheOp::nc;
    else if (word == "v2") m.vector = 2;
    else if (word == "v4") m.vector = 4;
    else if (word == "v8") m.vector = 8;
    else if (word == "L2::cache_hint") m.cache_hint = true;
    else if (word == "L1::evict_normal" || word == "L1::evict_unchanged" || word == "L1::evict_first" ||
             word == "L1::evict_last" || word == "L1::no_allocate" || word == "L2::evict_normal" ||
             word == "L2::evict_first" || word == "L2::evict_last" || word == "L2::64B" || word == "L2::128B" ||
             word == "L2::256B" || word == "unified") {
    } else return m;
    d.take(word);
  }
  if (m.cache == CacheOp::cv && m.order == Order::weak) m.order = Order::volatile_;
  if (m.order == Order::volatile_ && m.scope == Scope::none) m.scope = Scope::sys;
  if (m.order != Order::weak && m.scope == Scope::none) m.scope = Scope::gpu;
  return m;
}

void check_named_space(Decoder& d, const Decoder::Address& address, Via& via) {
  if (address.variable == nullptr) return;
  Via named = Via::generic;
  switch (address.variable->kind) {
    case Variable::shared:
    case Variable::dynamic_shared: named = Via::shared; break;
    case Variable::local: named = Via::local; break;
    case Variable::global: named = Via::global; break;
    default: d.fail("this variable cannot be addressed here");
  }
  if (via == Via::generic) via = named;
  const bool constant = via == Via::constant && named == Via::global;
  if (via != named && !constant) d.fail("the variable lies in another state space");
}

std::span<const Opcode> memory_opcodes() {
  static const Opcode table[] = {
      {"ld", [](Decoder& d) { load_or_store(d, false); }, InstructionClass::load_global},
      {"ldu", [](Decoder& d) { load_or_store(d, false); }, InstructionClass::load_global},
      {"st", [](Decoder& d) { load_or_store(d, true); }, InstructionClass::store_global},
      {"prefetch", prefetch, InstructionClass::other},
      {"prefetchu", prefetchu, InstructionClass::other},
      {"applypriority", [](Decoder& d) { line_hint(d, "L2::evict_normal"); }, InstructionClass::other},
      {"discard", [](Decoder& d) { line_hint(d, "L2"); }, InstructionClass::other},
      {"createpolicy", createpolicy, InstructionClass::other},
  };
  return table;
}

}  // namespace machine
