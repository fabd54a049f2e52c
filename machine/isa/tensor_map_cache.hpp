// Where copies find their tensor maps: in memory, through a cache that a write by the program does not reach.
#pragma once

#include "exec/tensor_map.hpp"
#include "isa/bulk_decode.hpp"

namespace machine {

// The operand that names a tensor map: a generic or global address, or a parameter of the kernel.
BulkAddress tensor_map_address(Decoder& d, std::size_t operand);

// The tensor map at `address`, for lane `lane`. False, and reported: there is none, or it was changed and no fence has
// made the change visible.
bool fetch_tensor_map(const Inst& i, Warp& w, unsigned lane, std::uint64_t address, TensorMap& map);

}  // namespace machine
