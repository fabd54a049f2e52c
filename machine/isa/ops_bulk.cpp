// cp.async.bulk and cp.reduce.async.bulk of adjacent bytes, their groups, and their prefetch.
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

struct BulkOperands {
  BulkKind kind = BulkKind::load;
  BulkAddress destination, source, mbarrier;
  Slot size = 0;
  Reducer reduce = nullptr;
  std::uint8_t element = 0;  // bytes of what is reduced
  BulkTail tail;

  void require(const Inst& i, Warp& w, Mask lanes) const {
    for (const Slot s : {destination.base, source.base, mbarrier.base})
      if (s != 0) require_defined(i, w, s, lanes, UndefinedUse::address);
    require_defined(i, w, size, lanes, UndefinedUse::control);
  }
};

void copy_lane(const Inst& i, Warp& w, const BulkOperands& op, unsigned l) {
  auto bulk = std::make_unique<PendingBulk>();
  BulkCopy& c = bulk->copy;
  c.kind = op.kind;
  c.reduces = op.reduce != nullptr;
  c.element = op.element;
  bulk->reduce = op.reduce;
  const u32 bytes = bulk->bytes = w.at<const u32>(op.size)[l];
  BulkPiece piece;
  piece.bytes = bytes;
  piece.from = c.reads_shared() ? op.source.shared(w, l) : op.source.of(w, l);
  if (op.kind != BulkKind::prefetch)
    piece.to = c.writes_shared() ? op.destination.shared(w, l) : op.destination.of(w, l);
  if (c.writes_shared()) {
    c.mbarrier = op.mbarrier.shared(w, l);
    if (!usable_mbarrier(i, w, l, c.mbarrier) || !own_block_only(i, w, op.tail, l)) return;
  }
  if (!bulk_aligned(i, w, l, c.reads_shared() ? Space::shared : Space::global, piece.from, 16) ||
      !bulk_aligned(i, w, l, c.writes_shared() ? Space::shared : Space::global, piece.to, 16))
    return drop_bulk(w, *bulk);
  if (bytes % 16 != 0) {
    bulk_invalid(i, w, l, "its size is " + std::to_string(bytes) + " bytes, not a multiple of 16");
    return drop_bulk(w, *bulk);
  }
  if (bytes == 0) return;
  bulk->pieces.push_back(piece);
  issue_bulk(i, w, l, std::move(bulk));
}

void emit_copy(Decoder& d, const BulkOperands& op) {
  emit_by_lane<BulkOperands, copy_lane>(d, op, op.kind == BulkKind::store && op.reduce != nullptr);
}

// Destination and source spaces as they stand in the spelling: in that order.
BulkKind direction(Decoder& d) {
  const bool cluster = d.opcode().find(".shared::cluster") != std::string_view::npos;
  const bool cta = d.opcode().find(".shared::cta") != std::string_view::npos;
  const bool global = d.opcode().find(".global") != std::string_view::npos;
  d.accept("shared::cluster"), d.accept("shared::cta"), d.accept("global");
  if (cluster && cta && !global) return BulkKind::exchange;
  if (!global || cluster == cta)
    d.fail("needs .shared::cluster.global, .shared::cta.global, .shared::cluster.shared::cta or .global.shared::cta");
  if (cluster || d.opcode().find(".shared::cta") < d.opcode().find(".global")) return BulkKind::load;
  return BulkKind::store;
}

void completion(Decoder& d, BulkKind kind) {
  if (kind == BulkKind::store ? !d.accept("bulk_group") : !d.accept("mbarrier::complete_tx::bytes"))
    d.fail(kind == BulkKind::store ? "needs .bulk_group" : "needs .mbarrier::complete_tx::bytes");
}

// [destination], [source], size, and of what an mbarrier completes [mbarrier].
void operands(Decoder& d, BulkOperands& op) {
  const bool tracked = op.kind != BulkKind::store;
  d.end(tracked ? 4 : 3, 6);
  op.destination = bulk_address(d, 0, tracked);
  op.source = bulk_address(d, 1, op.kind != BulkKind::load);
  op.size = d.source(2, Type::u32);
  if (tracked) op.mbarrier = bulk_address(d, 3, true);
  bulk_tail_operands(d, op.tail, tracked ? 4 : 3);
  emit_copy(d, op);
}

void prefetch(Decoder& d) {
  if (d.accept("tensor")) return decode_tensor_copy(d);
  BulkOperands op;
  op.kind = BulkKind::prefetch;
  if (!d.accept("L2") || !d.accept("global")) d.fail("needs .L2.global");
  op.tail = bulk_tail(d);
  d.end(2, 3);
  op.source = bulk_address(d, 0, false);
  op.size = d.source(1, Type::u32);
  bulk_tail_operands(d, op.tail, 2);
  emit_copy(d, op);
}

}  // namespace

BulkAddress bulk_address(Decoder& d, std::size_t operand, bool shared) {
  const auto address = d.address(operand);
  Via via = shared ? Via::shared : Via::global;
  check_named_space(d, address, via);
  if (!shared && address.width != 8) d.fail("a 32-bit address register");
  return {address.base, address.width == 8, address.offset};
}

BulkTail bulk_tail(Decoder& d) {
  BulkTail tail;
  if (d.accept("multicast::cluster")) tail.multicast = ~Slot{0};
  tail.hint = d.accept("L2::cache_hint");
  return tail;
}

void bulk_tail_operands(Decoder& d, BulkTail& tail, std::size_t first) {
  const std::size_t wanted = first + (tail.multicast != 0 ? 1 : 0) + (tail.hint ? 1 : 0);
  if (d.count() != wanted) d.fail("has " + std::to_string(d.count()) + " operands, not " + std::to_string(wanted));
  if (tail.multicast != 0) tail.multicast = d.source(first++, Type::b16);
  if (tail.hint) d.source(first, Type::b64);
}

bool own_block_only(const Inst& i, Warp& w, const BulkTail& tail, unsigned lane) {
  if (tail.multicast == 0) return true;
  const auto blocks = w.at<const std::uint16_t>(tail.multicast)[lane];
  if (blocks == 1) return true;
  bulk_invalid(
      i, w, lane,
      "its mask names blocks that the cluster does not have: clusters of more than one block are not supported");
  return false;
}

BulkReduction bulk_reduction(Decoder& d) {
  const int which = d.accept_one({"add", "min", "max", "inc", "dec", "and", "or", "xor"});
  if (which < 0) d.fail("needs an operation");
  return static_cast<BulkReduction>(which);
}

void refuse_later_forms(Decoder& d, std::initializer_list<std::string_view> words) {
  for (const auto word : words)
    if (d.opcode().find("." + std::string(word)) != std::string_view::npos)
      d.fail("." + std::string(word) + " needs sm_100 or later");
}

void decode_bulk(Decoder& d) {
  if (d.accept("commit_group")) {
    d.end(0);
    d.emit(bulk_commit);
    return;
  }
  refuse_later_forms(d, {"cp_mask", "ignore_oob", "sync_restrict", "mbarrier::report"});
  if (d.accept("wait_group")) {
    const bool read = d.accept("read");
    d.end(1);
    const u32 left = d.immediate(0);
    Inst& i = d.emit(bulk_wait);
    i.imm = left, i.extra = read;
    d.ends_block();
    return;
  }
  if (d.accept("prefetch")) return prefetch(d);
  if (d.accept("tensor")) return decode_tensor_copy(d);
  BulkOperands op;
  op.kind = direction(d);
  completion(d, op.kind);
  op.tail = bulk_tail(d);
  operands(d, op);
}

void decode_bulk_reduce(Decoder& d) {
  if (d.accept("tensor")) return decode_tensor_reduce(d);
  BulkOperands op;
  op.kind = direction(d);
  if (op.kind == BulkKind::load) d.fail("cannot reduce into shared memory from global memory");
  completion(d, op.kind);
  op.tail = bulk_tail(d);
  const BulkReduction operation = bulk_reduction(d);
  const bool noftz = d.accept("noftz");
  const Type t = d.type();
  const bool half = t == Type::f16 || t == Type::bf16;
  if (half && operation == BulkReduction::add && !noftz) d.fail("needs .noftz");
  const bool small = t == Type::u32 || t == Type::s32 || t == Type::b32;
  if (op.kind == BulkKind::exchange && !small &&
      !((t == Type::u64 || t == Type::s64) && operation == BulkReduction::add))
    d.refuse_type(t);
  op.reduce = bulk_reducer(operation, t, false);
  op.element = static_cast<std::uint8_t>(bytes_of(t));
  if (op.reduce == nullptr) d.refuse_type(t);
  operands(d, op);
}

}  // namespace machine
