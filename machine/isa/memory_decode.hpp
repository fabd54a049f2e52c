// Decoding that the instructions on memory share.
#pragma once

#include "exec/memory_access.hpp"
#include "ptx/decoder.hpp"

namespace machine {

struct MemoryModifiers {
  Via via = Via::generic;
  Order order = Order::weak;
  Scope scope = Scope::none;
  CacheOp cache = CacheOp::none;
  unsigned vector = 1;
  bool cache_hint = false;
};
// Takes modifiers up to the type (or the first that it does not know), in any order, as ptxas does.
MemoryModifiers memory_modifiers(Decoder& d);
// A variable named in the address must lie in the state space of the instruction.
void check_named_space(Decoder& d, const Decoder::Address& address, Via& via);

// How a load or store of `op`'s element and register width moves values of type `t`.
void prepare_element(Decoder& d, MemoryOp& op, Type t);
// Emits the load or store `op`, prepared and with its registers, at the addresses in `base` plus `offset`.
void emit_access(Decoder& d, const MemoryOp& op, Slot base, std::int64_t offset);

}  // namespace machine
