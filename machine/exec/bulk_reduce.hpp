// Element by element reductions of bulk copies.
#pragma once

#include <cstddef>
#include <cstdint>

#include "exec/types.hpp"

namespace machine {

enum class BulkReduction : std::uint8_t { add, min, max, inc, dec, and_, or_, xor_ };

// to[k] = op(to[k], from[k]) for the elements in `bytes` bytes.
using Reducer = void (*)(std::byte* to, const std::byte* from, std::size_t bytes);

// nullptr: the operation does not exist for the type. Of f32, `flush` treats subnormal values as zero.
Reducer bulk_reducer(BulkReduction operation, Type type, bool flush);

}  // namespace machine
