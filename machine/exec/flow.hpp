// How undefined bits go through an instruction. Known of the instructions of a kernel once a warp of it holds undefined
// values: `Program::followed` decodes it again then.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "exec/inst.hpp"

namespace machine {

struct FlowOperand {
  Slot slot = 0;
  std::uint8_t bytes = 0;  // 0: a predicate
};

struct Flow;
// One lane of an instruction: values and undefined bits of what it reads, in the order of its operands.
struct FlowLane {
  const Inst& inst;
  const Flow& flow;
  const std::uint64_t* value;
  const std::uint64_t* undefined;
  unsigned write;  // which of its results is asked for
};
// The undefined bits of a result.
using FlowRule = std::uint64_t (*)(const FlowLane& lane);

enum class FlowKind : std::uint8_t {
  nothing,     // has no part in it
  computes,    // `rule` says which bits of its results are undefined
  decides,     // must not depend on undefined values
  handled,     // its handler follows the bits; a guard must be defined
  collective,  // the same, and so must be the mask of its members
};

struct Flow {
  FlowKind kind = FlowKind::nothing;
  bool moves = false;  // moves bits, and computes nothing
  bool takes_carry = false, gives_carry = false;
  std::uint8_t x = 0, y = 0, z = 0;  // the rule's own
  FlowRule rule = nullptr;
  std::vector<FlowOperand> reads, writes;
};

// A register's place in the frame, and the statements between which it is alive.
struct PlaceLife {
  std::uint32_t offset = 0, first = 0, last = 0;
};

// The flow of an instruction by its spelling, without operands. Without a rule of its own, any undefined bit of a lane
// makes all that it gives undefined.
Flow flow_of(std::string_view base, const std::vector<std::string_view>& modifiers, bool packs, bool unpacks);

}  // namespace machine
