// What an mbarrier instruction was decoded to, and its handler.
#pragma once

#include "exec/memory_access.hpp"

namespace machine {

enum class MbarrierAction : std::uint8_t {
  init,
  inval,
  arrive,
  drop,
  expect_tx,
  complete_tx,
  test,
  pending_count,
  async_arrive,
  async_arrive_noinc
};

struct MbarrierOperands {
  MbarrierAction action = MbarrierAction::arrive;
  Order order = Order::release;
  Scope scope = Scope::cta;
  Via via = Via::shared;
  std::uint8_t base_width = 4;
  bool expects = false;  // arrive.expect_tx
  bool parity = false, blocking = false;
  Slot count = 0;  // arrive count, init count, transaction bytes
  Slot state = 0;  // destination of arrive (0: none), source of test
};

// Inst::data: MbarrierOperands. a, imm: the address; d: predicate of a test, or pending_count's result.
const Inst* mbarrier(const Inst& i, Warp& w, Mask mask);

}  // namespace machine
