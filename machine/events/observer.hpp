// What execution reports to the checks. Execution knows nothing of them: it calls this interface, or nothing at all.
//
// Cost: one virtual call for a warp-wide access, never one for a lane; a machine without an observer (nullptr) tests a
// pointer. Arithmetic is never reported. A set of checks is composed at compile time behind one Observer, so
// that the checks of one access are inlined into one body.
//
// Threads: a launch is split into chunks of blocks (the split does not depend on the number of cores). Each chunk has
// an observer of its own, from fork(), which several threads may call at once; one thread calls what it returns. join()
// brings them together in chunk order. A kernel whose blocks can talk to each other (atomics, strong or volatile
// accesses, fences on global memory, grid sync) is one chunk, reported to one fork, with its blocks interleaved. So
// inside a launch of several chunks no two blocks synchronise: every conflict between blocks is a race, whatever the
// order.
//
// The host-side calls (operations, host accesses, allocations) come from one thread at a time, never during a launch.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "events/access.hpp"
#include "events/bulk.hpp"
#include "events/undefined.hpp"
#include "memory/layout.hpp"
#include "memory/object.hpp"

namespace machine {

class Kernel;  // ../exec/machine.hpp

struct Dim3 {
  std::uint32_t x = 1, y = 1, z = 1;
  std::uint64_t count() const { return std::uint64_t{x} * y * z; }
  bool operator==(const Dim3&) const = default;
};

// ---- what happens where ------------------------------------------------------------------------------------------

// The widest element (one component of a vector) that any instruction of a kernel stores, in bytes by state space.
struct StoreBytes {
  std::uint8_t global = 0, shared = 0, local = 0;
  // of arrays of structs that are stored to in global memory, powers of two (../exec/linear_address.hpp)
  unsigned strides = 0;
};

struct LaunchInfo {
  const Kernel* kernel = nullptr;
  std::uint64_t operation = 0;  // the stream operation (below) that this launch is
  Dim3 grid, block;
  std::uint32_t dynamic_shared = 0;
  std::uint32_t warps_per_block = 0;
  std::uint32_t resident_limit = 0;  // most blocks resident at a time in one chunk
  std::uint64_t chunks = 1;
  bool cooperative = false;
  bool communicates = false;  // blocks may synchronise with each other; then chunks == 1
  const Object* params = nullptr;
  StoreBytes stores;
};

// A resident block. Lives from block_begin to block_end; `state` is the observer's own.
struct BlockInfo {
  const LaunchInfo* launch = nullptr;
  std::uint64_t index = 0;          // linear block index in the grid, x fastest
  Dim3 id;                          // blockIdx
  std::uint32_t slot = 0;           // 0 .. resident_limit - 1, reused when the block ends
  std::uint64_t shared = 0;         // storage address of shared offset 0
  std::uint32_t shared_extent = 0;  // bytes from there, gaps and dynamic array included
  std::uint32_t threads = 0;        // in the block; the last warp may be partial
  mutable void* state = nullptr;
};

// Where a warp is. `pc` is the index of the instruction in its kernel: Kernel::location(pc) gives the source line.
struct WarpPoint {
  const BlockInfo* block = nullptr;
  std::uint32_t warp = 0;  // in the block; thread = warp * 32 + lane, x fastest
  std::uint32_t pc = 0;
  Mask active = 0;                    // lanes executing this instruction (guard applied)
  Mask alive = 0;                     // lanes of the warp that exist and have not exited
  const LocalFrame* frame = nullptr;  // of the function that the lanes are in
};

// ---- synchronisation ---------------------------------------------------------------------------------------------

enum class BarrierUse : std::uint8_t { sync, arrive, reduce };

struct BarrierArrival {
  std::uint32_t id = 0;  // 0 .. 15
  BarrierUse use = BarrierUse::sync;
  std::uint32_t expected = 0;  // threads that complete it: the operand, or every thread of the block when not given
  bool counted = false;        // the instruction gave the count
  bool aligned = false;        // bar.sync / barrier.sync.aligned: every lane of the warp must be at this instruction
};

// A block barrier that completed. arrived[w]: lanes of warp w that took part (for a barrier without a
// count, exited lanes do not). waited[w]: those that were waiting and go on now (arrive-only lanes are not among them).
struct BarrierRelease {
  std::uint32_t id = 0;
  std::span<const Mask> arrived;
  std::span<const Mask> waited;
};

enum class Collective : std::uint8_t {
  syncwarp,
  shuffle,
  vote,
  match,
  reduce,
  elect,
  mma,
  matrix_load,
  matrix_store,
  matrix_move
};

enum class FenceKind : std::uint8_t { acq_rel, sc };  // membar.* is sc

enum class MbarrierOp : std::uint8_t {
  init,
  invalidate,
  arrive,
  arrive_drop,
  expect_tx,
  complete_tx,
  arrive_expect_tx,
  async_arrive,  // cp.async.mbarrier.arrive: takes effect when the lane's earlier copies have landed
  test,          // test_wait / try_wait that returned true: the phase asked for has completed
  test_failed,
};
struct MbarrierEvent {
  MbarrierOp op = MbarrierOp::arrive;
  Order order = Order::release;  // arrive: release (default) or relaxed; test: acquire (default) or relaxed
  Scope scope = Scope::cta;
  Mask lanes = 0;
  const std::uint64_t* address = nullptr;  // [32] storage addresses in shared memory
  std::uint32_t count = 0;                 // init: expected arrivals; arrive: count of each lane
  // [32] phase number (0, 1, ...) that the arrive fell in or the test saw complete
  const std::uint64_t* phase = nullptr;
};

// One cp.async instruction of a warp. It is an actor of its own: reads its source and writes its destination between
// issue and landing; the machine does both at landing, as late as a wait allows.
struct AsyncCopy {
  std::uint64_t id = 0;  // ascending in a block
  std::uint32_t pc = 0;  // of the cp.async
  Mask lanes = 0;
  std::uint32_t bytes = 0;                      // written a lane: 4, 8 or 16
  const std::uint32_t* source_bytes = nullptr;  // [32] bytes read; the rest of `bytes` is zero-filled
  Mask whole = 0;                               // of `lanes`, those that read all of `bytes`
  // Both sides as accesses of `lanes` with a width of `bytes`: async_read of global, async_write of shared memory.
  Access source, destination;
};

// ---- faults that execution itself meets --------------------------------------------------------------------------

enum class Fault : std::uint8_t {
  illegal_address,  // the lane would harm the host or touch what is nobody's; also reported when memcheck is off
  misaligned_address,
  trap,
  assertion,  // detail: the message
  breakpoint,
  divergent_barrier,   // an aligned barrier or collective reached by part of a warp
  passed_barrier,      // other threads of the block took a path past this barrier; other: where
  barrier_count,       // expected count not a multiple of 32, above the block, or different from the others'
  barrier_number,      // above 15
  barrier_mixed,       // bar.red and bar.sync, or different reduction types, on one barrier
  mask_excludes_self,  // an executing lane is not in the membermask that it gives
  mask_names_exited,   // membermask names a lane that exited or never was (warning for collectives on partial warps)
  mask_mismatch,       // lanes of one collective gave different masks; other: where those that it names went instead
  shuffle_width,       // no power of two
  deadlock,            // detail: who waits for what
  mbarrier_invalid,    // operation on an mbarrier that was not initialised, count overflow
  async_not_waited,    // a block ended with copies in flight (they land then)
  bulk_invalid,        // a bulk copy or a tensor map that the hardware refuses; detail says why
  unsupported,         // met at run time only; detail names it
  stack_overflow,
  double_free,   // of memory of the device's heap
  invalid_free,  // of what malloc() of a kernel did not give; detail: what it is
  invalid_call,  // a call of an address that is no function, or one of another kind; detail: what it is
  stalled,       // instruction limit or timeout; detail says which warps were where
};

struct FaultEvent {
  Fault fault = Fault::trap;
  Mask lanes = 0;                          // of the warp, that are at fault; 0 when the whole block is meant
  const std::uint64_t* address = nullptr;  // [32] for address faults, as in Access
  Space space = Space::global;
  std::uint32_t width = 0;
  std::string_view detail;
  const WarpPoint* other = nullptr;  // a second place that the fault is about
};

// ---- the host's side: operations and their order -----------------------------------------------------------------

enum class OperationKind : std::uint8_t { kernel, copy, set, host_function, allocate, release, host };

// A piece of work on a stream, or a stretch of the host's own program (kind host). `after` names the
// operations that are ordered before this one (stream order, events, synchronisation); order is transitive, and what is
// not ordered by it is concurrent. Ids ascend in order of submission.
struct Operation {
  std::uint64_t id = 0;
  OperationKind kind = OperationKind::kernel;
  std::uint64_t stream = 0;
  std::string name;  // kernel name, "cudaMemcpyAsync", ...
  std::vector<std::uint64_t> after;
};

// ---- the interface -----------------------------------------------------------------------------------------------

class Observer {
 public:
  virtual ~Observer() = default;

  // Host side.
  virtual void operation_begin(const Operation&) {}
  virtual void operation_end(const Operation&) {}
  virtual void allocated(const Object&) {}
  virtual void released(const Object&) {}
  // The host (or a copy engine, in `operation`) reads or writes memory. Told before it happens. False: the range
  // leaves its object or is freed, and the runtime must not touch it. `pitch`/`rows` describe a 2D range.
  virtual bool host_access(std::uint64_t operation, AccessKind, std::uint64_t address, std::uint64_t bytes,
                           std::uint64_t pitch = 0, std::uint64_t rows = 1) {
    (void)operation, (void)address, (void)bytes, (void)pitch, (void)rows;
    return true;
  }

  // Launch. launch_begin and launch_end go to the parent; everything between to the forks.
  virtual void launch_begin(const LaunchInfo&) {}
  virtual std::unique_ptr<Observer> fork(std::uint64_t chunk) = 0;
  // The chunks of the launch in order. False: blocks of different chunks touched the same bytes, at least one writing,
  // so what they saw may depend on timing; the machine then restores memory and repeats the launch as one chunk
  // (launch_begin comes again, with chunks == 1, and everything reported since the first one is to be forgotten).
  virtual bool join(std::span<const std::unique_ptr<Observer>> chunks) = 0;
  virtual void launch_end(const LaunchInfo&) {}

  // Of chunks that have run: whether none of the checks has an error to report.
  virtual bool clean(std::span<const std::unique_ptr<Observer>> chunks) const {
    (void)chunks;
    return true;
  }
  // Chunks of the same launch under another seed, which memory remembers nothing of: what the checks found counts,
  // unless the launch itself shows it. Told before join().
  virtual void tried(std::span<const std::unique_ptr<Observer>> chunks, std::uint64_t seed) {
    (void)chunks, (void)seed;
  }

  // The last block of the chunk has ended. Told on the thread that ran it, before the launch's other chunks need have.
  virtual void chunk_end() {}

  virtual void block_begin(const BlockInfo&) {}
  virtual void block_end(const BlockInfo&) {}

  // Told before the access happens. Returns the lanes that may go on; the others load zero, or store nothing.
  virtual Mask access(const WarpPoint&, const Access& a) { return a.lanes; }

  virtual void barrier_arrive(const WarpPoint&, const BarrierArrival&) {}
  virtual void barrier_release(const BlockInfo&, const BarrierRelease&) {}
  // All lanes that `mask` names (and that have not exited) have arrived and go on together. Only syncwarp orders
  // memory.
  virtual void collective(const WarpPoint&, Collective, Mask mask) { (void)mask; }
  virtual void fence(const WarpPoint&, FenceKind, Scope) {}
  virtual void mbarrier(const WarpPoint&, const MbarrierEvent&) {}

  virtual void async_issue(const WarpPoint&, const AsyncCopy&) {}
  virtual void async_commit(const WarpPoint&) {}
  // Lanes `lanes` of the copy land, because the warp at `point` waited (or an mbarrier completed, or the block ended).
  // Returns the lanes that may go on. Waited is false when nobody waited for them: the write is then not ordered to
  // the issuing thread.
  virtual Mask async_land(const WarpPoint& point, const AsyncCopy&, Mask lanes, bool waited) {
    (void)point, (void)waited;
    return lanes;
  }
  virtual void async_wait(const WarpPoint&, std::uint32_t groups_left) { (void)groups_left; }

  // A bulk copy is issued by the lane point.active. False: it would touch what it must not, and is dropped.
  virtual bool bulk_issue(const WarpPoint&, const BulkCopy&) { return true; }
  // It has read its source, and unless it is a store written its destination: as part of `phase` of its mbarrier.
  virtual void bulk_land(const WarpPoint&, const BulkCopy&, std::uint64_t phase) { (void)phase; }
  // The lanes of point.active close a bulk group; wait until all but the newest groups are done, or have read their
  // sources.
  virtual void bulk_commit(const WarpPoint&) {}
  virtual void bulk_wait(const WarpPoint&, std::uint32_t groups_left, bool read) { (void)groups_left, (void)read; }
  // fence.proxy.async: orders accesses of the generic proxy before it and of the async proxy after it.
  virtual void proxy_fence(const WarpPoint&) {}

  // point.active have called a function, which has a local frame of its own (point.frame).
  virtual void function_entered(const WarpPoint&) {}
  // They have got `grown`, the last array of their frame, which nobody has written.
  virtual void stack_grown(const WarpPoint&, const GrownStack::Array& grown) { (void)grown; }
  // The lane at `point` frees an object of the device's heap. Told before it happens.
  virtual void heap_freed(const WarpPoint& point, const Object&) { (void)point; }
  virtual void threads_exit(const WarpPoint&) {}  // point.active: the lanes that exit
  virtual void fault(const WarpPoint&, const FaultEvent&) {}
  // Whether the checks want to know what becomes of undefined values. With `memory`, accesses come with room for them.
  virtual Following following() const { return Following::none; }
  // At `point`, undefined values of `lanes` decide something; `origin` is that of the first lane.
  virtual void undefined_used(const WarpPoint& point, UndefinedUse, Mask lanes, const Origin& origin) {
    (void)point, (void)lanes, (void)origin;
  }
  // Programmatic dependent launch: the kernel passed griddepcontrol.wait, or has let its dependents go.
  virtual void dependency_wait(const WarpPoint&) {}
  virtual void dependency_launch(const WarpPoint&) {}
};

}  // namespace machine
