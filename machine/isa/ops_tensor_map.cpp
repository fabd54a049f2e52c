// Tensor maps as the kernel handles them: fetched, changed (tensormap.replace), copied and fenced.
#include <cstring>

#include "exec/lanes.hpp"
#include "exec/undefined.hpp"
#include "isa/families.hpp"
#include "isa/memory_decode.hpp"
#include "isa/tensor_map_cache.hpp"
#include "memory/address_space.hpp"

namespace machine {
namespace {

using u32 = std::uint32_t;
using u64 = std::uint64_t;

// All 32 lanes or one of them touch the 128 bytes of a map; false: they must not.
bool admit_map(const Inst& i, Warp& w, AccessKind kind, Space space, u64 address, Mask lanes) {
  alignas(64) u64 addresses[kWarp];
  Access a;
  a.kind = kind;
  a.space = space;
  a.lanes = lanes;
  a.address = addresses;
  const bool together = lanes == kFullMask;
  a.width = together ? kTensorMapBytes / kWarp : 32;
  for (u32 part = 0; part < (together ? 1u : kTensorMapBytes / 32); ++part) {
    for (unsigned l = 0; l < kWarp; ++l) addresses[l] = address + (together ? l * a.width : part * 32);
    classify(a);
    a.undefined = w.worker->undefined.get();
    const bool good = admit(i, w, a) == lanes;
    if (a.undefined != nullptr) {
      if (a.undefined->lanes != 0)
        report_undefined(i, w, UndefinedUse::address, a.undefined->lanes, a.undefined->origins[a.first_lane()]);
      a.undefined->lanes = 0;
    }
    if (!good || w.stop == Stop::aborted) return false;
    if (kind == AccessKind::store) before_store(w, a, lanes);
  }
  return true;
}

enum class Field : std::uint8_t {
  address,
  rank,
  box,
  dimension,
  stride,
  element_stride,
  element,
  interleave,
  swizzle,
  fill
};

struct ReplaceOperands {
  BulkAddress map;
  Field field = Field::address;
  bool shared = false, wide = false;
  u32 ordinal = 0;
  Slot value = 0;
};

bool replace_field(TensorMap& m, const ReplaceOperands& op, u64 v) {
  // PTX numbers the types in an order of its own.
  static constexpr TensorElement kElements[] = {
      TensorElement::u8,   TensorElement::u16,  TensorElement::u32,     TensorElement::s32,     TensorElement::u64,
      TensorElement::s64,  TensorElement::f16,  TensorElement::f32,     TensorElement::f32_ftz, TensorElement::f64,
      TensorElement::bf16, TensorElement::tf32, TensorElement::tf32_ftz};
  switch (op.field) {
    case Field::address: m.address = v; break;
    case Field::rank: m.rank = static_cast<std::uint8_t>(v + 1); break;
    case Field::box: m.box[op.ordinal] = static_cast<std::uint16_t>(v); break;
    case Field::dimension: m.last[op.ordinal] = static_cast<u32>(v - 1); break;
    case Field::stride: m.strides[op.ordinal] = v; break;
    case Field::element_stride: m.element_strides[op.ordinal] = static_cast<std::uint8_t>(v); break;
    case Field::element:
      if (v >= std::size(kElements)) return false;
      m.element = kElements[v];
      break;
    case Field::interleave: m.interleave = static_cast<std::uint8_t>(v); break;
    case Field::swizzle: m.swizzle = static_cast<std::uint8_t>(v); break;
    case Field::fill: m.fill_nan = v != 0; break;
  }
  return true;
}

const Inst* replace(const Inst& i, Warp& w, Mask mask) {
  mask &= w.active;
  if (mask == 0) return &i + 1;
  const ReplaceOperands& op = *static_cast<const ReplaceOperands*>(i.data);
  if (w.follows) [[unlikely]] {
    require_defined(i, w, op.map.base, mask, UndefinedUse::address);
    require_defined(i, w, op.value, mask, UndefinedUse::control);
  }
  for_lanes(mask, [&](unsigned l) {
    if (w.stop == Stop::aborted) return;
    u64 address = op.map.of(w, l);
    bool shared = op.shared;
    if (!shared && address - kSharedWindow < kWindowBytes) shared = true, address -= kSharedWindow;
    if (shared) address = shared_storage(w, address, false);
    const Space space = shared ? Space::shared : Space::global;
    if (!bulk_aligned(i, w, l, space, address, kTensorMapBytes)) return;
    if (!admit_map(i, w, AccessKind::load, space, address, Mask{1} << l) ||
        !admit_map(i, w, AccessKind::store, space, address, Mask{1} << l))
      return;
    TensorMap map;
    std::memcpy(&map, reinterpret_cast<const void*>(address), sizeof map);
    if (!map.valid()) return bulk_invalid(i, w, l, "no tensor map lies at the address of tensormap.replace");
    const u64 value = op.wide ? w.at<const u64>(op.value)[l] : w.at<const u32>(op.value)[l];
    if (!replace_field(map, op, value)) return bulk_invalid(i, w, l, "a value that tensormap.replace does not know");
    map.seal();
    std::memcpy(reinterpret_cast<void*>(address), &map, sizeof map);
  });
  return w.stop == Stop::aborted ? nullptr : &i + 1;
}

struct FencedCopyOperands {
  BulkAddress destination, source;
  Scope scope = Scope::cta;
};

// The warp copies a map from shared to global memory, and releases it.
const Inst* fenced_copy(const Inst& i, Warp& w, Mask mask) {
  mask &= w.active;
  if (mask == 0) return &i + 1;
  const FencedCopyOperands& op = *static_cast<const FencedCopyOperands*>(i.data);
  const auto l = static_cast<unsigned>(std::countr_zero(mask));
  const u64 to = op.destination.of(w, l), from = op.source.shared(w, l);
  const Mask lanes = mask == kFullMask ? mask : Mask{1} << l;
  if (bulk_aligned(i, w, l, Space::global, to, kTensorMapBytes) &&
      bulk_aligned(i, w, l, Space::shared, from, kTensorMapBytes) &&
      admit_map(i, w, AccessKind::load, Space::shared, from, lanes) &&
      admit_map(i, w, AccessKind::store, Space::global, to, lanes))
    std::memcpy(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), kTensorMapBytes);
  if (w.stop == Stop::aborted) return nullptr;
  if (w.observer != nullptr) w.observer->fence(w.point(i, mask), FenceKind::acq_rel, op.scope);
  talked(w);
  return &i + 1;
}

struct MapFenceOperands {
  BulkAddress map;
  Scope scope = Scope::cta;
  bool acquires = false;
};

const Inst* map_fence(const Inst& i, Warp& w, Mask mask) {
  mask &= w.active;
  if (mask == 0) return &i + 1;
  const MapFenceOperands& op = *static_cast<const MapFenceOperands*>(i.data);
  if (op.acquires && w.block->bulk) for_lanes(mask, [&](unsigned l) { w.block->bulk->maps.erase(op.map.of(w, l)); });
  if (w.observer != nullptr) w.observer->fence(w.point(i, mask), FenceKind::acq_rel, op.scope);
  talked(w);
  return &i + 1;
}

Scope scope_of(Decoder& d) {
  static constexpr Scope kScopes[] = {Scope::cta, Scope::cluster, Scope::gpu, Scope::sys};
  const int scope = d.accept_one({"cta", "cluster", "gpu", "sys"});
  if (scope < 0) d.fail("needs a scope");
  if (scope >= 2) d.program.communicates = true;
  return kScopes[scope];
}

void fenced_copy_decode(Decoder& d) {
  FencedCopyOperands op;
  if (!d.accept("global") || !d.accept("shared::cta") || !d.accept("tensormap::generic") || !d.accept("release"))
    d.fail("needs .global.shared::cta.tensormap::generic.release");
  op.scope = scope_of(d);
  if (!d.accept("sync") || !d.accept("aligned")) d.fail("needs .sync.aligned");
  d.end(3);
  if (d.immediate(2) != kTensorMapBytes) d.fail("copies 128 bytes");
  op.destination = bulk_address(d, 0, false);
  op.source = bulk_address(d, 1, true);
  const void* data = d.keep_value(op);
  d.emit(fenced_copy).data = data;
  d.ends_block();
}

void replace_decode(Decoder& d) {
  ReplaceOperands op;
  if (!d.accept("tile")) d.fail("needs .tile");
  refuse_later_forms(d, {"swizzle_atomicity"});
  const int field = d.accept_one({"global_address", "rank", "box_dim", "global_dim", "global_stride", "element_stride",
                                  "elemtype", "interleave_layout", "swizzle_mode", "fill_mode"});
  if (field < 0) d.fail("needs a field");
  op.field = static_cast<Field>(field);
  op.shared = d.accept("shared::cta");
  d.accept("global");
  if (!d.accept("b1024")) d.fail("needs .b1024");
  op.wide = op.field == Field::address || op.field == Field::stride;
  const Type t = d.type({op.wide ? Type::b64 : Type::b32});
  const bool numbered = op.field == Field::box || op.field == Field::dimension || op.field == Field::stride ||
                        op.field == Field::element_stride;
  d.end(numbered ? 3 : 2);
  if (numbered) op.ordinal = d.immediate(1);
  if (op.ordinal >= (op.field == Field::stride ? 4u : 5u)) d.fail("a dimension that a tensor map does not have");
  op.value = d.source(numbered ? 2 : 1, t);
  const auto address = d.address(0);
  Via via = op.shared ? Via::shared : Via::generic;
  check_named_space(d, address, via);
  op.shared = via == Via::shared;
  op.map = {address.base, address.width == 8, address.offset};
  const void* data = d.keep_value(op);
  d.emit(replace).data = data;
}

void tensormap(Decoder& d) {
  if (d.accept("replace")) return replace_decode(d);
  if (d.accept("cp_fenceproxy")) return fenced_copy_decode(d);
  d.fail("needs .replace or .cp_fenceproxy");
}

}  // namespace

BulkAddress tensor_map_address(Decoder& d, std::size_t operand) {
  const auto address = d.address(operand);
  if (address.variable != nullptr && address.variable->kind != Variable::global)
    d.fail("a tensor map is named by its generic address");
  if (address.width != 8) d.fail("a 32-bit address register");
  return {address.base, true, address.offset};
}

bool fetch_tensor_map(const Inst& i, Warp& w, unsigned lane, u64 address, TensorMap& map) {
  if (address - kSharedWindow < kWindowBytes || address - kLocalWindow < kWindowBytes) {
    bulk_invalid(i, w, lane,
                 std::string("its tensor map lies in ") + (address - kLocalWindow < kWindowBytes ? "local" : "shared") +
                     " memory: pass it as a const __grid_constant__ parameter, in constant or in global memory");
    return false;
  }
  if (!bulk_aligned(i, w, lane, Space::global, address, 64)) return false;
  if (!admit_map(i, w, AccessKind::load, Space::global, address, Mask{1} << lane)) return false;
  std::memcpy(&map, reinterpret_cast<const void*>(address), sizeof map);
  if (!map.valid()) {
    bulk_invalid(i, w, lane,
                 "no tensor map lies at its address: pass it as a const __grid_constant__ parameter, in constant or in "
                 "global memory, aligned to 64 bytes");
    return false;
  }
  if (const std::string why = tensor_map_fault(map); !why.empty()) {
    bulk_invalid(i, w, lane, "its tensor map was given " + why);
    return false;
  }
  const auto [known, fresh] = bulk_queue(*w.block).maps.try_emplace(address, map.check);
  if (fresh || known->second == map.check) return true;
  known->second = map.check;
  bulk_invalid(i, w, lane,
               "its tensor map has changed since a copy last used it, with no fence.proxy.tensormap::generic.acquire "
               "on it since");
  return true;
}

void decode_tensor_map_fence(Decoder& d) {
  MapFenceOperands op;
  const int order = d.accept_one({"acquire", "release"});
  if (order < 0) d.fail("needs .acquire or .release");
  op.acquires = order == 0;
  op.scope = scope_of(d);
  d.end(op.acquires ? 2 : 0);
  if (op.acquires) {
    op.map = tensor_map_address(d, 0);
    if (d.immediate(1) != kTensorMapBytes) d.fail("fences 128 bytes");
  }
  const void* data = d.keep_value(op);
  d.emit(map_fence).data = data;
  d.ends_block();
}

std::span<const Opcode> tensor_map_opcodes() {
  static const Opcode table[] = {{"tensormap", tensormap, InstructionClass::other}};
  return table;
}

}  // namespace machine
