// The checks of one chunk of a launch: what one worker thread calls.
#pragma once

#include "observers/check.hpp"
#include "observers/initcheck.hpp"
#include "observers/memcheck.hpp"
#include "observers/racecheck.hpp"
#include "observers/synccheck.hpp"
#include "observers/traffic.hpp"

namespace machine::checks {

class Chunk final : public Observer {
 public:
  Chunk(const CheckOptions& options, const LaunchInfo& launch, const Regions& regions, ArenaBits& written,
        const Kept& kept, bool waits)
      : context_{options, launch, regions, written, kept, waits, sink_, pages_} {}

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

  // What the launch's end reads from it.
  Sink& sink() { return sink_; }
  PageMap& pages() { return pages_; }
  std::uint64_t bytes_checked() const { return bytes_; }
#define CHECK(name, type, sanitizer) \
  type& name() { return name##_; }
#include "observers/checks.inc"
#undef CHECK

 private:
  // Calls f(check) for the checks that are on, in their order.
  template <class F>
  void each(F&& f) {
#define CHECK(name, type, sanitizer) \
  if (type::kAlways || context_.options.name) f(name##_);
#include "observers/checks.inc"
#undef CHECK
  }
  template <class F>
  Mask admitted(F&& admit);
  template <class F>
  void observe(const Access& access, Mask on, const Extent& extent, F&& f);

  Sink sink_;
  PageMap pages_;
  ChunkContext context_;
#define CHECK(name, type, sanitizer) type name##_{context_};
#include "observers/checks.inc"
#undef CHECK
  std::uint64_t bytes_ = 0;
};

}  // namespace machine::checks
