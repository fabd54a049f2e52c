// Undefined values: which bits of what a warp loads or stores nobody has written, and where they come from.
#pragma once

#include <array>
#include <cstdint>

#include "events/access.hpp"

namespace machine {

// The place where an undefined value was read first. It goes with the value, through registers and memory.
struct Origin {
  enum class Kind : std::uint8_t {
    memory,     // bytes that nobody had written; `address` as in Access
    local,      // the same in local memory; `address` is the offset
    unwritten,  // a register that nobody had written
    absent,     // a shuffle from a lane outside it
    kept,       // an earlier launch stored it; `address` is what the checks know it by
  };
  std::uint64_t address;
  std::uint32_t pc;
  std::uint8_t warp, lane;
  Kind kind;
  bool computed;  // something computed with it: no padding that is only copied
};

// What is undefined of the values of one access, by lane.
struct Undefined {
  Mask lanes = 0;                                        // with an undefined bit; what follows counts for them only
  std::array<std::array<std::uint8_t, 32>, kWarp> bits;  // by byte of the access; set: undefined
  std::array<Origin, kWarp> origins;
};

// How an atomic makes a new value of the old one and its operand, as far as undefined bits go.
enum class Merge : std::uint8_t { replace, and_, or_, xor_, any };

// What an undefined value decides. `stored`: it comes to memory, where nobody follows it; `printed`: by the kernel's
// printf; `swap`: whether a compare-and-swap stores.
enum class UndefinedUse : std::uint8_t { branch, address, members, control, stored, printed, swap };

// How far undefined values are followed.
enum class Following : std::uint8_t { none, registers, memory };

}  // namespace machine
