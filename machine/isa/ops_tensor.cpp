// cp.async.bulk.tensor and cp.reduce.async.bulk.tensor: boxes of a tensor that a tensor map describes.
#include <cstring>

#include "exec/lanes.hpp"
#include "exec/undefined.hpp"
#include "isa/bulk_decode.hpp"
#include "isa/families.hpp"
#include "isa/memory_decode.hpp"
#include "isa/tensor_map_cache.hpp"

namespace machine {
namespace {

using u32 = std::uint32_t;
using u64 = std::uint64_t;

struct TensorOperands {
  BulkKind kind = BulkKind::load;
  BulkAddress map, shared, mbarrier;
  std::uint8_t rank = 1, offsets = 0;
  bool im2col = false, reduces = false;
  BulkReduction reduction = BulkReduction::add;
  Slot coordinates[5] = {}, offset[3] = {};
  BulkTail tail;

  void require(const Inst& i, Warp& w, Mask lanes) const {
    for (const Slot s : {map.base, shared.base, mbarrier.base})
      if (s != 0) require_defined(i, w, s, lanes, UndefinedUse::address);
    for (unsigned d = 0; d < rank; ++d) require_defined(i, w, coordinates[d], lanes, UndefinedUse::address);
  }
};

Reducer reducer_of(const TensorMap& map, BulkReduction operation) {
  const bool logic =
      operation == BulkReduction::and_ || operation == BulkReduction::or_ || operation == BulkReduction::xor_;
  const bool real = map.element >= TensorElement::f16;
  const Type type = logic && !real ? (map.element_bytes() == 8   ? Type::b64
                                      : map.element_bytes() == 4 ? Type::b32
                                                                 : Type::none)
                                   : map.type();
  const bool flush = map.element == TensorElement::f32_ftz || map.element == TensorElement::tf32_ftz;
  return bulk_reducer(operation, type, flush);
}

BulkConversion conversion_of(TensorElement e) {
  switch (e) {
    case TensorElement::f32_ftz: return BulkConversion::flush_f32;
    case TensorElement::tf32:
    case TensorElement::tf32_ftz: return BulkConversion::round_tf32;
    default: return BulkConversion::none;
  }
}

void copy_lane(const Inst& i, Warp& w, const TensorOperands& op, unsigned l) {
  TensorMap map;
  if (!fetch_tensor_map(i, w, l, op.map.of(w, l), map)) return;
  if (map.rank != op.rank)
    return bulk_invalid(
        i, w, l,
        "the tensor map is of rank " + std::to_string(map.rank) + ", the copy of rank " + std::to_string(op.rank));
  if (map.im2col != op.im2col)
    return bulk_invalid(i, w, l,
                        map.im2col ? "the tensor map is for im2col mode, the copy for tiles"
                                   : "the tensor map is for tiles, the copy for im2col mode");
  if (map.interleave != 0) return bulk_invalid(i, w, l, "interleaved tensor maps are not supported");
  auto bulk = std::make_unique<PendingBulk>();
  BulkCopy& c = bulk->copy;
  c.kind = op.kind;
  c.tensor = true;
  c.swizzle = map.swizzle;
  bulk->fill = map.fill();
  bulk->fill_bytes = map.fill_nan ? map.element_bytes() : 8;
  if (op.kind == BulkKind::load) bulk->conversion = conversion_of(map.element);
  if (op.reduces) {
    c.reduces = true;
    c.element = static_cast<std::uint8_t>(map.element_bytes());
    bulk->reduce = reducer_of(map, op.reduction);
    if (bulk->reduce == nullptr)
      return bulk_invalid(i, w, l, "the reduction does not exist for the tensor map's data type");
  }
  TensorPlace place;
  for (unsigned d = 0; d < op.rank; ++d) place.coordinates[d] = w.at<const std::int32_t>(op.coordinates[d])[l];
  for (unsigned d = 0; d < op.offsets; ++d) place.offsets[d] = w.at<const std::uint16_t>(op.offset[d])[l];
  if (op.kind == BulkKind::load) {
    c.mbarrier = op.mbarrier.shared(w, l);
    if (!usable_mbarrier(i, w, l, c.mbarrier) || !own_block_only(i, w, op.tail, l)) return;
  }
  if (op.kind != BulkKind::prefetch) place.shared = op.shared.shared(w, l);
  bulk->bytes = tensor_pieces(map, place, op.kind == BulkKind::store, bulk->pieces);
  if (!bulk_aligned(i, w, l, Space::shared, place.shared, 128)) return drop_bulk(w, *bulk);
  issue_bulk(i, w, l, std::move(bulk));
}

// [map, {coordinates}]
void tensor_address(Decoder& d, TensorOperands& op, std::size_t operand) {
  const Operand& o = d.operand(operand);
  if (o.kind != Operand::address || o.parts.size() != 1) d.fail("needs a tensor map and coordinates");
  if (o.parts[0].parts.size() != op.rank)
    d.fail("has " + std::to_string(o.parts[0].parts.size()) + " coordinates, not " + std::to_string(op.rank));
  for (unsigned k = 0; k < op.rank; ++k) op.coordinates[k] = d.source(o.parts[0].parts[k], Type::s32);
  op.map = tensor_map_address(d, operand);
}

void im2col_offsets(Decoder& d, TensorOperands& op, std::size_t operand) {
  const Operand& o = d.operand(operand);
  if (o.kind != Operand::list || o.parts.size() != op.rank - 2u) d.fail("needs an offset for each spatial dimension");
  op.offsets = static_cast<std::uint8_t>(o.parts.size());
  for (unsigned k = 0; k < op.offsets; ++k) op.offset[k] = d.source(o.parts[k], Type::u16);
}

void shape(Decoder& d, TensorOperands& op) {
  refuse_later_forms(d, {"tile::gather4", "tile::scatter4", "im2col::w", "cta_group", "mbarrier::report", "override"});
  const int rank = d.accept_one({"1d", "2d", "3d", "4d", "5d"});
  if (rank < 0) d.fail("needs a dimension");
  op.rank = static_cast<std::uint8_t>(rank + 1);
}

void mode(Decoder& d, TensorOperands& op) {
  const int mode = d.accept_one({"tile", "im2col", "im2col_no_offs"});
  op.im2col = mode > 0;
  if (op.im2col && op.rank < 3) d.fail("im2col needs three dimensions or more");
}

void emit_copy(Decoder& d, const TensorOperands& op) { emit_by_lane<TensorOperands, copy_lane>(d, op, op.reduces); }

void store_operands(Decoder& d, TensorOperands& op) {
  op.kind = BulkKind::store;
  d.accept("global");
  if (!d.accept("shared::cta") || !d.accept("bulk_group")) d.fail("needs .global.shared::cta and .bulk_group");
  op.tail = bulk_tail(d);
  d.end(2, 3);
  tensor_address(d, op, 0);
  op.shared = bulk_address(d, 1, true);
  bulk_tail_operands(d, op.tail, 2);
  emit_copy(d, op);
}

}  // namespace

void decode_tensor_copy(Decoder& d) {
  TensorOperands op;
  shape(d, op);
  mode(d, op);
  const bool prefetch = d.accept("L2");
  if (!prefetch && d.opcode().find(".global.shared::cta") != std::string_view::npos) return store_operands(d, op);
  const bool to_shared = d.accept("shared::cluster") || d.accept("shared::cta");
  if (!d.accept("global") || to_shared == prefetch)
    d.fail("needs .shared::cluster.global, .shared::cta.global or .global.shared::cta");
  std::size_t at = 0;
  if (prefetch) {
    op.kind = BulkKind::prefetch;
  } else if (!d.accept("mbarrier::complete_tx::bytes")) {
    d.fail("needs .mbarrier::complete_tx::bytes");
  }
  op.tail = bulk_tail(d);
  d.end(prefetch ? 1 : 3, 6);
  if (!prefetch) op.shared = bulk_address(d, at++, true);
  tensor_address(d, op, at++);
  if (!prefetch) op.mbarrier = bulk_address(d, at++, true);
  if (op.im2col) im2col_offsets(d, op, at++);
  bulk_tail_operands(d, op.tail, at);
  emit_copy(d, op);
}

void decode_tensor_reduce(Decoder& d) {
  TensorOperands op;
  shape(d, op);
  op.reduces = true;
  op.reduction = bulk_reduction(d);
  mode(d, op);
  store_operands(d, op);
}

}  // namespace machine
