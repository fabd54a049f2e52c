// What a check of a chunk of a launch is: it hides those of the functions below whose events it wants to see. Chunk
// calls the checks of checks.inc, each by its own type, so that a check costs nothing where it has nothing to do.
#pragma once

#include "events/observer.hpp"
#include "observers/bits.hpp"
#include "observers/check_options.hpp"
#include "observers/extent.hpp"
#include "observers/kept.hpp"
#include "observers/pages.hpp"
#include "observers/regions.hpp"
#include "observers/sink.hpp"

namespace machine::checks {

// What the checks of a chunk are made from. `written`, `kept`: what initcheck knows of memory from before the launch.
// `waits`: the kernel waits for the one that it depends on. `pages`: what the chunk's blocks have touched.
struct ChunkContext {
  const CheckOptions& options;
  const LaunchInfo& launch;
  const Regions& regions;
  ArenaBits& written;
  const Kept& kept;
  bool waits;
  Sink& sink;
  PageMap& pages;
};

// One side of a copy, as an access of those lanes that take part; their extent, when there are any.
struct CopySide {
  const Access& access;
  const Extent& extent;
};

class ChunkCheck {
 public:
  // It is called whether or not it was asked for; others count on what it does then.
  static constexpr bool kAlways = false;
  static constexpr Mask kAllLanes = ~Mask{0};
  // How far it wants undefined values followed.
  static constexpr Following kFollowing = Following::none;

  void chunk_end() {}
  void block_begin(const BlockInfo&) {}
  void block_end(const BlockInfo&) {}

  // Before any check observes it: the lanes that may go on.
  Mask admit_global(const WarpPoint&, const Access&, const Extent&) { return kAllLanes; }
  Mask admit_shared(const WarpPoint&, const Access&, const Extent&) { return kAllLanes; }
  Mask admit_local(const WarpPoint&, const Access&, const Extent&) { return kAllLanes; }
  bool admit_bulk(const WarpPoint&, const BulkCopy&) { return true; }
  // An access of the lanes that went on. Reads of a launch's parameters are left out: nobody writes them.
  void global(const WarpPoint&, const Access&, const Extent&) {}
  void shared(const WarpPoint&, const Access&, const Extent&) {}
  void local(const WarpPoint&, const Access&, const Extent&) {}
  void constant(const WarpPoint&, const Access&, const Extent&) {}  // a load by ld.const

  void barrier_arrive(const WarpPoint&, const BarrierArrival&) {}
  void barrier_release(const BlockInfo&, const BarrierRelease&) {}
  void collective(const WarpPoint&, Collective, Mask) {}
  void fence(const WarpPoint&, Scope) {}
  void proxy_fence(const WarpPoint&) {}
  void mbarrier(const WarpPoint&, const MbarrierEvent&) {}

  void async_issue(const WarpPoint&, const AsyncCopy&) {}
  void async_commit(const WarpPoint&) {}
  void async_wait(const WarpPoint&, std::uint32_t) {}
  // `lanes` of it were admitted. `source`: of those that read all.
  void landed(const WarpPoint&, const AsyncCopy&, Mask, const CopySide&, const CopySide&) {}
  void bulk_issue(const WarpPoint&, const BulkCopy&) {}  // not of a prefetch
  void bulk_land(const WarpPoint&, const BulkCopy&, std::uint64_t) {}
  void bulk_commit(const WarpPoint&) {}
  void bulk_wait(const WarpPoint&, std::uint32_t, bool) {}

  void function_entered(const WarpPoint&) {}
  void stack_grown(const WarpPoint&, const GrownStack::Array&) {}
  void heap_freed(const WarpPoint&, const Object&) {}
  void threads_exit(const WarpPoint&) {}
  void dependency_wait(const WarpPoint&) {}
  void dependency_launch(const WarpPoint&) {}
};

}  // namespace machine::checks
