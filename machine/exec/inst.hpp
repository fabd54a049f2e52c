// A decoded instruction: a handler and the operands it works on, resolved to slots.
#pragma once

#include <cstddef>
#include <cstdint>

#include "events/access.hpp"

namespace machine {

struct Inst;
struct Warp;
struct Function;

// Executes one instruction for the lanes in `mask` and returns the next one; nullptr: the warp stops (Warp::stop).
using Handler = const Inst* (*)(const Inst&, Warp&, Mask mask);

// Where 32 lanes of a value lie: a byte offset into one of the warp's banks, the bank in the low two bits.
// A slot holds 32 values of the register's width side by side; a predicate is one Mask.
enum class Bank : std::uint32_t { registers = 0, constants = 1, specials = 2 };
using Slot = std::uint32_t;
inline constexpr Slot slot(Bank bank, std::uint32_t offset) { return offset | static_cast<std::uint32_t>(bank); }

struct alignas(64) Inst {
  Handler fn = nullptr;
  std::uint32_t pc = 0;  // statement in the kernel, for locations
  Slot guard = 0;        // predicate
  Mask flip = 0;         // ~0 for @!p
  Slot d = 0, a = 0, b = 0, c = 0, e = 0;
  std::uint32_t extra = 0;  // handler's own
  std::int64_t imm = 0;     // handler's own: address offset, immediate
  union {
    const Inst* target = nullptr;  // branches
    const Slot* slots;             // operand lists (vectors, matrix fragments)
    const void* data;              // handler's own, owned by the Function
  };
};
static_assert(sizeof(Inst) == 64);

}  // namespace machine
