// ld and st in every space, with vectors, cache operators, order and scope.
#include <algorithm>

#include "exec/memory_access.hpp"
#include "exec/undefined.hpp"
#include "isa/families.hpp"
#include "isa/memory_decode.hpp"

namespace machine {
namespace {

using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;

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

// The parameter block of a launch, at a constant offset: the same for all lanes, and never reported.
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

InstructionClass class_of(const MemoryOp& op, bool store) {
  switch (op.via) {
    case Via::shared: return store ? InstructionClass::store_shared : InstructionClass::load_shared;
    case Via::local: return store ? InstructionClass::store_local : InstructionClass::load_local;
    case Via::constant: return InstructionClass::load_constant;
    case Via::param: return InstructionClass::load_param;
    default: return store ? InstructionClass::store_global : InstructionClass::load_global;
  }
}

// The type, and what follows from it.
Type element_of(Decoder& d, MemoryOp& op, unsigned vector) {
  const Type t = d.type();
  const bool wide = t == Type::b128;  // two components of 64 bits
  op.element = wide ? 8 : static_cast<std::uint8_t>(bytes_of(t));
  op.components = static_cast<std::uint8_t>(wide ? 2 * vector : vector);
  if (t == Type::pred || op.element == 0) d.refuse_type(t);
  if (!is_integer(t) && !is_bits(t) && t != Type::f32 && t != Type::f64 && !wide) d.refuse_type(t);
  op.width = op.element * op.components;
  if (op.width > 32) d.fail("an access of more than 32 bytes");
  return t;
}

// The registers of the value: one, or those of a vector; of a 128-bit register both halves.
void registers(Decoder& d, MemoryOp& op, const Operand& value, Type t) {
  const bool wide = t == Type::b128, store = op.kind == AccessKind::store;
  std::vector<Operand> parts;
  for (const auto& part : value.kind == Operand::list ? value.parts : std::vector<Operand>{value}) {
    if (wide)
      for (const auto& half : d.halves(part)) parts.push_back(half);
    else parts.push_back(part);
  }
  if (parts.size() != op.components) d.fail("the vector and its registers differ in length");
  const Type element = wide ? Type::b64 : t;
  for (std::size_t k = 0; k < parts.size(); ++k) {
    unsigned width = 0;
    op.registers[k] = store ? d.wide_source(parts[k], element, width) : d.wide_destination(parts[k], element, width);
    if (k != 0 && width != op.register_width) d.fail("registers of different widths in one vector");
    op.register_width = static_cast<std::uint8_t>(width);
  }
  prepare_element(d, op, element);
}

// A parameter of the kernel, of the device function at hand, or of a call.
void parameter(Decoder& d, MemoryOp& op, const Decoder::Address& address, std::string_view name, Type t) {
  const bool store = op.kind == AccessKind::store;
  d.klass(InstructionClass::load_param);
  if (address.variable == nullptr) {
    if (store) d.fail("a store to .param by register");
    op.via = Via::global;  // the parameter block lies in global memory; reading it by address is checked there
    op.base_width = static_cast<std::uint8_t>(address.width);
    Inst& i = d.emit(memory);
    i.a = address.base, i.imm = address.offset;
    i.data = d.keep_value(op);
    return;
  }
  const auto outside = [&] { d.fail("access outside parameter '" + std::string(name) + "'"); };
  if (address.variable->kind == Variable::param_area) {
    const ParamArea* area = d.area(name);
    if (address.offset < 0 || address.offset + op.width > area->bytes + 3u) outside();
    Inst& i = d.emit(load_area);
    i.a = area->slot, i.imm = address.offset;
    i.data = d.keep_value(op);
    return;
  }
  if (address.variable->kind != Variable::kernel_param || store) d.fail("'" + std::string(name) + "' is no parameter");
  if (address.offset < 0 ||
      static_cast<u64>(address.offset) + op.width > address.variable->address + address.variable->size)
    outside();
  for (unsigned k = 0; k < op.components; ++k) {
    Inst& i = d.emit(op.register_width == 2   ? load_param<u16>
                     : op.register_width == 4 ? load_param<u32>
                                              : load_param<u64>);
    i.d = op.registers[k];
    d.follow(FlowKind::computes);
    i.imm = address.offset + static_cast<std::int64_t>(k * op.element);
    i.extra = op.element | (is_signed(t) ? 1u << 8 : 0);
  }
}

void load_or_store(Decoder& d, bool store) {
  if (store && d.accept("async")) return decode_store_async(d);
  MemoryOp op;
  op.kind = store ? AccessKind::store : AccessKind::load;
  const MemoryModifiers m = memory_modifiers(d);
  op.via = m.via;
  op.order = m.order;
  op.scope = m.scope;
  op.cache = m.cache;
  const Type t = element_of(d, op, m.vector);
  const std::size_t at = store ? 0 : 1, value = store ? 1 : 0;
  // A cache-policy operand may follow.
  d.end(m.cache_hint ? 3 : 2);
  if (m.cache_hint) d.source(2, Type::b64);
  registers(d, op, d.operand(value), t);
  const auto address = d.address(at);
  if (op.via == Via::param || (address.variable != nullptr && address.variable->kind == Variable::param_area))
    return parameter(d, op, address, d.operand(at).text, t);
  check_named_space(d, address, op.via);
  if (store && op.via == Via::constant) d.fail("a store to constant memory");
  Slot base = address.base;
  op.base_width = static_cast<std::uint8_t>(address.width);
  if (op.base_width == 4 && (op.via == Via::global || op.via == Via::generic)) d.fail("a 32-bit address register");
  if (address.variable != nullptr && address.variable->kind == Variable::local && !d.function.is_kernel)
    base = d.local_base();
  emit_access(d, op, base, address.offset);
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
  i.data = d.keep_value(op);
  if (strong) d.ends_block();
}

std::span<const Opcode> memory_opcodes() {
  static const Opcode table[] = {
      {"ld", [](Decoder& d) { load_or_store(d, false); }, InstructionClass::load_global},
      {"ldu", [](Decoder& d) { load_or_store(d, false); }, InstructionClass::load_global},
      {"st", [](Decoder& d) { load_or_store(d, true); }, InstructionClass::store_global},
  };
  return table;
}

}  // namespace machine
