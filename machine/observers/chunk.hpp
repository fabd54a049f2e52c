// The checks of one chunk of a launch: what one worker thread calls.
#pragma once

#include <memory>
#include <vector>

#include "observers/async_proxy.hpp"
#include "observers/bits.hpp"
#include "observers/checks.hpp"
#include "observers/extent.hpp"
#include "observers/initcheck.hpp"
#include "observers/memcheck.hpp"
#include "observers/order.hpp"
#include "observers/pages.hpp"
#include "observers/race_global.hpp"
#include "observers/race_shared.hpp"
#include "observers/strong.hpp"
#include "observers/traffic.hpp"

namespace machine::checks {

class Chunk final : public Observer {
 public:
  Chunk(const CheckOptions& options, const LaunchInfo& launch, const Regions& regions, ArenaBits& written,
        const Kept& kept, bool waits);

  std::unique_ptr<Observer> fork(std::uint64_t) override { return nullptr; }
  bool join(std::span<const std::unique_ptr<Observer>>) override { return true; }

  void chunk_end() override;
  void block_begin(const BlockInfo& block) override;
  void block_end(const BlockInfo& block) override;
  Mask access(const WarpPoint& point, const Access& access) override;
  void barrier_arrive(const WarpPoint& point, const BarrierArrival& arrival) override;
  void barrier_release(const BlockInfo& block, const BarrierRelease& release) override;
  void collective(const WarpPoint& point, Collective kind, Mask mask) override;
  void fence(const WarpPoint& point, FenceKind kind, Scope scope) override;
  void mbarrier(const WarpPoint& point, const MbarrierEvent& event) override;
  void async_issue(const WarpPoint& point, const AsyncCopy& copy) override;
  void async_commit(const WarpPoint& point) override;
  Mask async_land(const WarpPoint& point, const AsyncCopy& copy, Mask lanes, bool waited) override;
  void async_wait(const WarpPoint& point, std::uint32_t groups_left) override;
  bool bulk_issue(const WarpPoint& point, const BulkCopy& copy) override;
  void bulk_land(const WarpPoint& point, const BulkCopy& copy, std::uint64_t phase) override;
  void bulk_commit(const WarpPoint& point) override;
  void bulk_wait(const WarpPoint& point, std::uint32_t groups_left, bool read) override;
  void proxy_fence(const WarpPoint& point) override;
  void function_entered(const WarpPoint& point) override;
  void heap_freed(const WarpPoint& point, const Object& object) override;
  void stack_grown(const WarpPoint& point, const GrownStack::Array& grown) override;
  void threads_exit(const WarpPoint& point) override;
  void fault(const WarpPoint& point, const FaultEvent& event) override;
  void dependency_wait(const WarpPoint& point) override;
  void dependency_launch(const WarpPoint& point) override;
  Following following() const override;
  void undefined_used(const WarpPoint& point, UndefinedUse use, Mask lanes, const Origin& origin) override;

  // After chunk_end. False: blocks of the chunk conflict, and the launch is to be repeated as one chunk.
  bool apart() const { return !global_races_.blocks_meet(); }
  // What the launch's end takes from it.
  Sink& sink() { return sink_; }
  PageMap& pages() { return pages_; }
  PageMap& early_pages() { return early_; }
  PageMap& read_only_pages() { return read_only_; }
  // A warp let the dependents go before its own wait.
  bool hurries() const { return hurries_; }
  const TrafficCount& traffic() const { return traffic_; }
  const Initcheck& initcheck() const { return initcheck_; }
  std::uint64_t bytes_checked() const { return bytes_; }

 private:
  // The checks' state of a resident block, used again by the next block there and by later launches.
  struct Slot {
    BlockOrder order;
    SharedRaces shared;
    Locks::Held held;
    std::uint32_t waited = 0;  // warps past griddepcontrol.wait
    bool bulk = false;         // a thread of the block has issued a bulk copy
    std::unique_ptr<AsyncProxy> proxy;
  };
  static Slot& slot_of(const WarpPoint& point) { return *static_cast<Slot*>(point.block->state); }
  void global(const WarpPoint& point, const Access& access, const Extent& extent);
  void shared(const WarpPoint& point, const Access& access, const Extent& extent);

  const CheckOptions& options_;
  const LaunchInfo& launch_;
  bool waits_;
  bool hurries_ = false;
  Sink sink_;
  RaceReport race_report_;
  Memcheck memcheck_;
  Initcheck initcheck_;
  PageMap pages_, early_, read_only_;
  GlobalRaces global_races_;
  StrongLocations strong_;
  TrafficCount traffic_;
  std::vector<Slot*> slots_;
  std::uint64_t bytes_ = 0;
};

}  // namespace machine::checks
