// Turns two accesses that nothing orders into a finding that names both, and the edge that is missing.
#pragma once

#include <cstdint>
#include <string>

#include "observers/order.hpp"
#include "observers/pages.hpp"
#include "observers/sink.hpp"

namespace machine::checks {

// One side of a race.
struct Party {
  std::uint32_t block = 0;
  unsigned actor = 0;  // warp, or async_actor(warp)
  unsigned lane = 0;
  std::uint32_t pc = 0;
  Touch touch = Touch::read;

  unsigned warp() const { return actor & 31; }
  bool async() const { return actor >= 32; }
};

class RaceReport {
 public:
  RaceReport(const LaunchInfo& launch, Sink& sink) : launch_(launch), sink_(sink) {}

  // `now` is the access at hand, `before` the recorded one. `same_value`: both write, and wrote the same.
  void race(const BlockOrder& order, const Party& now, const Party& before, Stamp before_stamp, Relation relation,
            Space space, std::uint64_t address, const Object* object, bool same_value);

 private:
  const LaunchInfo& launch_;
  Sink& sink_;
};

}  // namespace machine::checks
