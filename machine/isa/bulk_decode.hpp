// What the spellings of bulk copies have in common.
#pragma once

#include <optional>

#include "exec/bulk.hpp"
#include "exec/lanes.hpp"
#include "exec/undefined.hpp"
#include "ptx/decoder.hpp"

namespace machine {

// An address operand: a register and an offset, in one state space.
struct BulkAddress {
  Slot base = 0;
  bool wide = true;  // a register of 64 bits
  std::int64_t offset = 0;

  std::uint64_t of(const Warp& w, unsigned lane) const {
    return (wide ? w.at<const std::uint64_t>(base)[lane] : w.at<const std::uint32_t>(base)[lane]) +
           static_cast<std::uint64_t>(offset);
  }
  std::uint64_t shared(const Warp& w, unsigned lane) const { return shared_storage(w, of(w, lane), false); }
};
BulkAddress bulk_address(Decoder& d, std::size_t operand, bool shared);

// Modifiers, in whatever order, and the operands behind those of the form: a block mask, a cache policy.
struct BulkTail {
  Slot multicast = 0;  // mask of blocks; 0: none
  bool hint = false;
};
BulkTail bulk_tail(Decoder& d);
void bulk_tail_operands(Decoder& d, BulkTail& tail, std::size_t first);
// False, and reported: blocks besides the own one are meant, of which there are none without clusters.
bool own_block_only(const Inst& i, Warp& w, const BulkTail& tail, unsigned lane);

// The handler of copies that each lane issues by itself: Lane(i, w, operands, lane). `Operands` is what was decoded,
// and says by require() which of its registers must be defined.
template <class Operands, void (*Lane)(const Inst&, Warp&, const Operands&, unsigned)>
const Inst* issue_by_lane(const Inst& i, Warp& w, Mask mask) {
  mask &= w.active;
  if (mask == 0) return &i + 1;
  const Operands& op = *static_cast<const Operands*>(i.data);
  if (w.follows) [[unlikely]]
    op.require(i, w, mask);
  for_lanes(mask, [&](unsigned l) {
    if (w.stop != Stop::aborted) Lane(i, w, op, l);
  });
  return w.stop == Stop::aborted ? nullptr : &i + 1;
}
template <class Operands, void (*Lane)(const Inst&, Warp&, const Operands&, unsigned)>
void emit_by_lane(Decoder& d, const Operands& op, bool reduces_global) {
  const void* data = d.keep_value(op);
  d.emit(issue_by_lane<Operands, Lane>).data = data;
  if (reduces_global) d.program.communicates = true;
  d.ends_block();
}

// The reduction that the modifiers name; behind it the type of a copy without a tensor map.
BulkReduction bulk_reduction(Decoder& d);
// What sm_100 added.
void refuse_later_forms(Decoder& d, std::initializer_list<std::string_view> words);

}  // namespace machine
