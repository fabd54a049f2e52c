// racecheck: accesses that conflict and that nothing orders, in global memory (race_global.hpp) and in the shared
// memory of a block (race_shared.hpp, async_proxy.hpp). What a thread knows of the others is in order.hpp.
//
// Which bytes a chunk has touched is marked whether or not races are looked for: initcheck learns from it what was
// written, and the launch whether its chunks met.
#pragma once

#include <memory>
#include <vector>

#include "observers/async_proxy.hpp"
#include "observers/check.hpp"
#include "observers/order.hpp"
#include "observers/race_global.hpp"
#include "observers/race_shared.hpp"
#include "observers/strong.hpp"

namespace machine::checks {

class Racecheck : public ChunkCheck {
 public:
  static constexpr bool kAlways = true;
  explicit Racecheck(const ChunkContext& context);

  void chunk_end();
  void block_begin(const BlockInfo& block);
  void block_end(const BlockInfo& block);
  void global(const WarpPoint& point, const Access& access, const Extent& extent);
  void shared(const WarpPoint& point, const Access& access, const Extent& extent);
  void constant(const WarpPoint& point, const Access& access, const Extent& extent);
  void barrier_arrive(const WarpPoint& point, const BarrierArrival& arrival);
  void barrier_release(const BlockInfo& block, const BarrierRelease& release);
  void collective(const WarpPoint& point, Collective kind, Mask mask);
  void fence(const WarpPoint& point, Scope scope);
  void proxy_fence(const WarpPoint& point);
  void mbarrier(const WarpPoint& point, const MbarrierEvent& event);
  void async_issue(const WarpPoint& point, const AsyncCopy& copy);
  void async_commit(const WarpPoint& point);
  void async_wait(const WarpPoint& point, std::uint32_t groups_left);
  void landed(const WarpPoint& point, const AsyncCopy& copy, Mask lanes, const CopySide& source,
              const CopySide& destination);
  void bulk_issue(const WarpPoint& point, const BulkCopy& copy);
  void bulk_land(const WarpPoint& point, const BulkCopy& copy, std::uint64_t phase);
  void bulk_commit(const WarpPoint& point);
  void bulk_wait(const WarpPoint& point, std::uint32_t groups_left, bool read);
  void heap_freed(const WarpPoint& point, const Object& object);
  void threads_exit(const WarpPoint& point);
  void dependency_wait(const WarpPoint& point);
  void dependency_launch(const WarpPoint& point);

  // After chunk_end. False: blocks of the chunk conflict, and the launch is to be repeated as one chunk.
  bool apart() const { return !global_races_.blocks_meet(); }
  // Where the kernel waits for the one that it depends on: what was touched before that wait, and what through the
  // read-only cache.
  PageMap& early_pages() { return early_; }
  PageMap& read_only_pages() { return read_only_; }
  PageMap& constant_pages() { return constants_; }  // what was loaded by ld.const
  // A warp let the dependents go before its own wait.
  bool hurries() const { return hurries_; }

 private:
  // `lanes` use the mbarriers at `address`, whose initialisation must come before.
  void check_initialised(const WarpPoint& point, Mask lanes, const std::uint64_t* address);

  // Who initialised an mbarrier.
  struct Initialisation {
    std::uint64_t address = 0;
    unsigned warp = 0, lane = 0;
    std::uint32_t pc = 0;
    Stamp stamp = 0;
  };
  // The state of a resident block, used again by the next block there and by later launches.
  struct BlockState {
    BlockOrder order;
    SharedRaces shared;
    Locks::Held held;
    std::uint32_t waited = 0;  // warps past griddepcontrol.wait
    bool bulk = false;         // a thread of the block has issued a bulk copy
    std::vector<Initialisation> initialised;
    Stamp newest_initialised = 0;
    std::unique_ptr<AsyncProxy> proxy;

    bool is_early(const WarpPoint& point) const { return (waited >> point.warp & 1) == 0; }
  };
  static BlockState& state_of(const WarpPoint& point) { return *static_cast<BlockState*>(point.block->state); }

  const LaunchInfo& launch_;
  const bool checks_;  // races are looked for
  const bool waits_;
  bool hurries_ = false;
  PageMap& pages_;
  PageMap early_, read_only_, constants_;
  RaceReport report_;
  GlobalRaces global_races_;
  StrongLocations strong_;
  std::vector<BlockState*> states_;  // by the block's place among those resident
};

}  // namespace machine::checks
