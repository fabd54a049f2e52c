// st.async and red.async: values that reach shared memory later, counted in bytes on an mbarrier.
#include <cstring>

#include "exec/lanes.hpp"
#include "exec/undefined.hpp"
#include "isa/bulk_decode.hpp"
#include "isa/families.hpp"
#include "isa/memory_decode.hpp"

namespace machine {
namespace {

using u32 = std::uint32_t;
using u64 = std::uint64_t;

struct AsyncStoreOperands {
  BulkAddress destination, mbarrier;
  std::uint8_t element = 4, components = 1;
  Slot values[4] = {};
  Reducer reduce = nullptr;
};

const Inst* store(const Inst& i, Warp& w, Mask mask) {
  mask &= w.active;
  if (mask == 0) return &i + 1;
  const AsyncStoreOperands& op = *static_cast<const AsyncStoreOperands*>(i.data);
  const u32 bytes = u32{op.element} * op.components;
  if (w.follows) [[unlikely]] {
    for (const Slot s : {op.destination.base, op.mbarrier.base}) require_defined(i, w, s, mask, UndefinedUse::address);
    for (unsigned c = 0; c < op.components; ++c) require_defined(i, w, op.values[c], mask, UndefinedUse::control);
  }
  for_lanes(mask, [&](unsigned l) {
    if (w.stop == Stop::aborted) return;
    auto bulk = std::make_unique<PendingBulk>();
    bulk->copy.kind = BulkKind::exchange;
    bulk->copy.registers = true;
    bulk->copy.reduces = op.reduce != nullptr;
    bulk->copy.mbarrier = op.mbarrier.shared(w, l);
    bulk->reduce = op.reduce;
    bulk->bytes = bytes;
    const u64 to = op.destination.shared(w, l);
    if (!usable_mbarrier(i, w, l, bulk->copy.mbarrier)) return;
    if (!bulk_aligned(i, w, l, Space::shared, to, bytes)) return drop_bulk(w, *bulk);
    for (unsigned c = 0; c < op.components; ++c) {
      const auto* value = w.at<const std::byte>(op.values[c]) + std::size_t{l} * op.element;
      bulk->read.insert(bulk->read.end(), value, value + op.element);
    }
    bulk->pieces.push_back({0, to, bytes});
    issue_bulk(i, w, l, std::move(bulk));
  });
  return w.stop == Stop::aborted ? nullptr : &i + 1;
}

void emit_store(Decoder& d, AsyncStoreOperands& op) {
  op.destination = bulk_address(d, 0, true);
  op.mbarrier = bulk_address(d, 2, true);
  const void* data = d.keep_value(op);
  d.emit(store).data = data;
  d.klass(InstructionClass::async_copy);
  d.ends_block();
}

void spelling(Decoder& d) {
  refuse_later_forms(d, {"mmio", "release", "global"});
  d.accept("weak"), d.accept("relaxed");
  if (d.accept("cta")) d.fail("needs .cluster");
  d.accept("cluster");
  if (!d.accept("shared::cluster") || !d.accept("mbarrier::complete_tx::bytes"))
    d.fail("needs .shared::cluster.mbarrier::complete_tx::bytes");
}

}  // namespace

// st.async{.weak}.shared::cluster.mbarrier::complete_tx::bytes{.v2, .v4}.type [address], value, [mbarrier]
void decode_store_async(Decoder& d) {
  AsyncStoreOperands op;
  spelling(d);
  const int vector = d.accept_one({"v2", "v4"});
  op.components = vector < 0 ? 1 : vector == 0 ? 2 : 4;
  const Type t = d.type({Type::b32, Type::b64, Type::u32, Type::u64, Type::s32, Type::s64, Type::f32, Type::f64});
  op.element = static_cast<std::uint8_t>(bytes_of(t));
  d.end(3);
  const Operand& value = d.operand(1);
  if ((value.kind == Operand::list ? value.parts.size() : 1) != op.components)
    d.fail("the vector and its registers differ in length");
  for (unsigned c = 0; c < op.components; ++c)
    op.values[c] = d.source(value.kind == Operand::list ? value.parts[c] : value, t);
  emit_store(d, op);
}

// red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.op.type [address], value, [mbarrier]
void decode_reduce_async(Decoder& d) {
  AsyncStoreOperands op;
  spelling(d);
  const BulkReduction operation = bulk_reduction(d);
  const Type t = d.type({Type::u32, Type::s32, Type::u64, Type::s64, Type::b32});
  if (bytes_of(t) == 8 && operation != BulkReduction::add) d.refuse_type(t);
  op.element = static_cast<std::uint8_t>(bytes_of(t));
  op.reduce = bulk_reducer(operation, t, false);
  if (op.reduce == nullptr) d.refuse_type(t);
  d.end(3);
  op.values[0] = d.source(1, t);
  emit_store(d, op);
}

}  // namespace machine
