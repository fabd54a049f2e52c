// Turns two accesses that nothing orders into a finding that names both, and the edge that is missing.
#pragma once

#include <cstdint>
#include <string>

#include "observers/order.hpp"
#include "observers/pages.hpp"
#include "observers/sink.hpp"
#include "observers/strong_uses.hpp"

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
  bool writes() const { return checks::writes(touch); }
};

// What two accesses are to each other that conflict and are not in order.
enum class Conflict : std::uint8_t {
  race,
  same_value,     // both write, and wrote the same
  one_sided,      // ordered but for a fence of the reader
  not_released,   // in order as run, but not where blocks acquire a lock in the other one
  volatile_data,  // volatile stores of different values, or one and an exchange that is a store
  met,            // a write after another lane's read, with nothing but a collective of the warp between them
  mixed_width,    // atomics of different widths
  block_order,    // volatile accesses of two blocks, ordered by what reaches one block only
};
// What of the order between a bulk copy and another access is missing.
enum class BulkOrder : std::uint8_t {
  mbarrier,  // the completion of the earlier copy, on its mbarrier
  group,     // the same, of its bulk group
  generic,   // a barrier behind the earlier access
  proxy,     // a fence.proxy.async behind the earlier write
};
inline bool is_warning(Conflict c) {
  return c != Conflict::race && c != Conflict::not_released && c != Conflict::mixed_width;
}

class RaceReport {
 public:
  RaceReport(const LaunchInfo& launch, Sink& sink) : launch_(launch), sink_(sink), uses_(launch.kernel) {}

  // Before the accesses of a warp are compared: what follows is counted once for each of its lanes.
  void next_access() { ++event_; }

  StrongUses& uses() { return uses_; }

  // An ld.global.nc and a write of the same kernel that are in order, `now` the later one. Without a `before` the write
  // was by the own block, long ago.
  void read_only(const Party& now, const Party* before, std::uint64_t address, const Object* object);

  // One of the two is a bulk copy, at `offset` of shared memory.
  void bulk(const Party& now, const Party& before, BulkOrder missing, std::uint64_t offset, const Object* object);

  // `now` is the access at hand, `before` the recorded one.
  void race(const BlockOrder& order, const Party& now, const Party& before, Stamp before_stamp, Relation relation,
            Conflict conflict, Space space, std::uint64_t address, const Object* object);

 private:
  const LaunchInfo& launch_;
  Sink& sink_;
  std::uint64_t event_ = 0;
  StrongUses uses_;
};

// What the relation of two conflicting accesses makes of them.
inline Conflict conflict_of(Relation relation, const Party& now, const Party& before, bool same_value) {
  if (same_value) return Conflict::same_value;
  if (relation == Relation::one_sided) return Conflict::one_sided;
  if (relation == Relation::met && now.writes() && !now.async() && !before.writes() && !before.async())
    return Conflict::met;
  return Conflict::race;
}

}  // namespace machine::checks
