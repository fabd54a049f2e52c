// What atom and red were decoded to, and their handler.
#pragma once

#include "exec/memory_access.hpp"
#include "exec/types.hpp"

namespace machine {

enum class AtomicKind : std::uint8_t { add, min, max, inc, dec, and_, or_, xor_, exch, cas };

// What memory holds afterwards, from what it holds, the operand, and the second operand of a compare-and-swap.
using AtomicFunction = std::uint64_t (*)(std::uint64_t old, std::uint64_t operand, std::uint64_t second);

// MemoryOp with what an atomic needs besides: second operands and results. registers holds the operands.
struct AtomicOp {
  MemoryOp memory;
  AtomicKind kind = AtomicKind::add;
  Slot second[2] = {}, result[8] = {};  // second operands of a compare-and-swap; two of 128 bits
  bool returns = false;
  AtomicFunction apply = nullptr;  // null: of 128 bits
};

// Null where PTX has no such operation on the type. `noftz`: the modifier is there.
AtomicFunction atomic_function(AtomicKind kind, Type type, bool noftz, bool shared);
// How lanes move their values; `transfer` of the MemoryOp.
void transfer_atomic(const MemoryOp& memory, Warp& w, const std::uint64_t* address, Mask mask, Shape shape);
void transfer_atomic_wide(const MemoryOp& memory, Warp& w, const std::uint64_t* address, Mask mask, Shape shape);

// Inst::data: AtomicOp. a, imm: the address.
const Inst* atomic(const Inst& i, Warp& w, Mask mask);

}  // namespace machine
