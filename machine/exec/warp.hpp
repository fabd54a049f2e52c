// The state of a running warp, its block and the worker that runs them.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "exec/inst.hpp"
#include "exec/machine.hpp"
#include "exec/program.hpp"
#include "exec/turns.hpp"

namespace machine {

struct Block;
struct Worker;
struct FrameUndefined;  // undefined.hpp
struct WarpUndefined;
struct PartMeetings;  // collective.hpp

// One activation of a function by a warp. Lanes that called together share it.
struct Frame : LocalFrame {
  const Function* function = nullptr;
  Frame* caller = nullptr;
  const Inst* call = nullptr;     // in the caller
  const Slot* passing = nullptr;  // how its values pass (ops_call.cpp)
  std::byte* registers = nullptr;
  std::uint32_t charge = 0;  // bytes of stack up to its end, without what lanes have asked for
  std::uint32_t depth = 0;
  std::uint32_t fragments = 0;                // fragments in this frame, and callees that return to it
  std::shared_ptr<FrameUndefined> undefined;  // once a register held undefined bits
  Bytes room;                                 // of the registers
};

enum class Stop : std::uint8_t {
  none,
  paused,      // budget spent
  yielded,     // waits by polling: nanosleep, a failed try_wait
  collective,  // waits for lanes of its own warp
  barrier,     // waits at a block barrier
  gathering,   // part of a warp at an aligned barrier, waits for the rest
  exited,
  aborted,  // the launch is over
};

struct Fragment {
  const Inst* pc = nullptr;
  Frame* frame = nullptr;
  Mask lanes = 0;
  Stop wait = Stop::paused;
  Mask need = 0;  // collective: lanes it waits for
  std::uint32_t barrier = 0;
  std::uint64_t turn = 0;  // when it last ran
  bool released = false;   // collective: all lanes have come, elsewhere; what they brought is staged
};

enum class Special : std::uint32_t {
  tid_x,
  tid_y,
  tid_z,
  ntid_x,
  ntid_y,
  ntid_z,
  ctaid_x,
  ctaid_y,
  ctaid_z,
  nctaid_x,
  nctaid_y,
  nctaid_z,
  laneid,
  warpid,
  nwarpid,
  smid,
  nsmid,
  gridid,
  lanemask_eq,
  lanemask_le,
  lanemask_lt,
  lanemask_ge,
  lanemask_gt,
  dynamic_smem_size,
  total_smem_size,
  aggr_smem_size,
  envreg1,
  envreg2,
  zero,
  one,
  count_
};
inline constexpr std::uint32_t kSpecialBytes = static_cast<std::uint32_t>(Special::count_) * 128;

// How often each lane took a path past barriers of its block since it met the last one.
struct PassedBy {
  const Inst* at = nullptr;  // the branch, or the barrier from which their predicate kept them
  std::array<std::uint32_t, 32> times{};
};

struct Warp {
  Warp();
  ~Warp();
  std::byte* bank[3] = {};
  Mask active = 0;  // lanes of the running fragment
  Mask lanes = 0;   // active, and the lanes that do not exist any more: arithmetic may write those too
  Mask alive = 0;
  std::int64_t budget = 0;
  bool diverged = false;              // other fragments exist
  bool released = false;              // the running fragment resumes at a collective that others have completed
  bool forced = false;                // this fragment's turn by age: lower counters do not take over
  bool follows = false;               // registers hold undefined bits: every instruction is followed
  const Inst* follow_from = nullptr;  // where to go on so, when that has just begun
  Stop stop = Stop::none;
  const Inst* stop_pc = nullptr;
  Mask need = 0;
  std::uint32_t barrier = 0;
  Mask carry = 0;                            // CC.CF, of a subtraction its complement: set without a borrow
  std::shared_ptr<WarpUndefined> undefined;  // what is not in a frame
  Observer* observer = nullptr;
  Block* block = nullptr;
  Worker* worker = nullptr;
  Frame* frame = nullptr;
  std::uint32_t index = 0;
  std::byte* local = nullptr;  // word-interleaved: word w of lane l at local + (w * 32 + l) * 4
  std::uint32_t local_bytes = 0;
  std::vector<Fragment> others;
  std::uint64_t turns = 0;
  std::int64_t fragment_turn = 0;  // what a fragment gets of this turn, where there are several

  // Polling: where it last looked in vain, and what memory had been through by then.
  bool polled = false;
  bool in_vain = false;  // and nothing has changed since it looked there before: other fragments go first
  std::uint64_t polled_at = 0, polled_after = 0;
  // While nothing changes (stillness.hpp): what the warp was like, and whether it was like that again.
  std::uint64_t watch = 0, likeness = 0, samples = 0;
  std::uint64_t likeness_leap = 0;  // Worker::leaps when it was like that
  bool recurs = false;              // and time has leapt in between where a clock decides anything
  bool awaits_leap = false;         // was like that again, but for the time

  // Addresses of the access at hand.
  alignas(64) std::array<std::uint64_t, 32> address_room{};
  std::uint64_t* address() { return address_room.data(); }
  // Async copies of this warp, oldest first, and how many groups each lane has committed.
  struct Copy;
  std::vector<std::unique_ptr<Copy>> copies, free_copies;
  std::array<std::uint32_t, 32> groups{};

  std::vector<PassedBy> passed;

  // A collective whose lanes arrive at different instructions: what each has brought.
  std::array<std::uint64_t, 32> staged{};
  Mask met_in_part = 0;  // lanes that have taken part in a collective without the whole warp: the table counts for them
  std::shared_ptr<PartMeetings> part_meetings;

  // Storage
  Bytes specials_room;
  std::uint64_t specials_of = 0;  // Worker::serial of the launch that they were filled for
  std::vector<std::unique_ptr<Frame>> frames;
  std::uint64_t register_bytes = 0;  // of all frames
  std::vector<Frame*> free_frames;

  template <class T>
  T* at(Slot s) const {
    return reinterpret_cast<T*>(bank[s & 3] + (s & ~Slot{3}));
  }
  Mask predicate(Slot s) const { return *at<const Mask>(s); }
  WarpPoint point(const Inst& i, Mask mask) const;
};

struct Warp::Copy {
  AsyncCopy event;  // pointers into the arrays below
  Mask pending = 0;
  alignas(64) std::array<std::uint64_t, 32> source{}, destination{};
  std::array<std::uint32_t, 32> source_bytes{}, group{};
};

struct BarrierState {
  std::array<Mask, 32> arrived{}, waited{};
  std::uint32_t count = 0;     // threads arrived, in the barrier's own counting
  std::uint32_t expected = 0;  // 0: every live thread
  bool in_use = false;
  std::uint8_t use = 0;  // reduction kind: 0 none, else popc/and/or
  std::uint32_t reduced_count = 0;
  bool reduced_and = true, reduced_or = false;
  WarpPoint first;  // the arrival that opened it
};

// Shadow of an mbarrier's phase count, for the observer; the object itself lives in shared memory.
struct MbarrierPhase {
  std::uint64_t address = 0, phase = 0;
  std::uint64_t expected = 0, arrived = 0;  // transaction bytes of this phase
};

// cp.async.mbarrier.arrive: the arrival happens when the copies issued before it have landed.
struct AsyncArrival {
  Warp* warp = nullptr;
  const Inst* inst = nullptr;
  Mask lanes = 0;
  std::uint64_t before = 0;  // copies of the warp with smaller ids
  std::array<std::uint64_t, 32> address{};
};

// Bulk copies in flight (bulk.hpp).
struct BulkQueue;

struct Block {
  BlockInfo info;
  std::byte* shared = nullptr;
  std::uint32_t shared_bytes = 0;
  std::byte* local = nullptr;
  std::uint64_t local_bytes = 0;
  std::vector<std::unique_ptr<Warp>> warps;
  std::uint32_t warp_count = 0;
  std::uint32_t alive_threads = 0;
  bool passed = false;  // a warp has passed barriers by
  std::array<BarrierState, 16> barriers;
  std::vector<MbarrierPhase> mbarriers;
  std::uint64_t mbarriers_begin = 0, mbarriers_end = 0;  // all that the block has had lie in between
  std::vector<AsyncArrival> async_arrivals;
  std::shared_ptr<BulkQueue> bulk;  // once a thread of it has issued one
  std::uint64_t next_copy = 0;
  std::uint64_t grid_barrier = 0;
  bool done = false;
};

struct BlockCount {
  std::uint64_t warps = 0, lanes = 0;
};

// Pages that a launch of several chunks has written, as they were before.
class UndoLog;

// Aligned, as its counters are: workers of one launch count on different cores.
struct alignas(128) Worker {
  const Program* program = nullptr;
  const LaunchRequest* request = nullptr;
  const Options* options = nullptr;
  const LaunchInfo* launch = nullptr;
  Observer* observer = nullptr;
  UndoLog* undo = nullptr;
  std::unique_ptr<Undefined> undefined;  // of the access at hand; null when undefined values are not followed
  bool memory_undefined = false;         // and whether they are followed through memory
  std::vector<BlockCount, LineAllocator<BlockCount>> counts;
  std::uint64_t bytes_loaded = 0, bytes_stored = 0;
  std::uint64_t executed = 0;        // warp instructions, kept for limits
  std::uint64_t memory_changes = 0;  // stores and atomics that changed a value others can see
  std::uint64_t clock = 0;
  std::uint64_t leaps = 0;  // of the clock, over waits that nothing else will end
  std::string printed;
  LaunchStatus status = LaunchStatus::ok;
  std::string message;
  std::byte* params = nullptr;
  std::uint64_t serial = 0;          // of the launch, in this process, from 1
  std::uint64_t grid_workspace = 0;  // %envreg1:%envreg2, the barrier of a cooperative launch
  std::uint32_t mode = ~0u;          // floating-point mode of the host thread, see set_mode
  Turns turns;
  // not 0: nothing has changed for a while, and warps are looked at; the number of the stretch
  std::uint64_t watch = 0;
  bool host_polled = false;     // since then a warp looked in vain at memory that the host may write
  std::uint64_t allowance = 0;  // warp instructions after which a tried schedule is given up; 0: none
  bool dependency_passed = false;
  std::uint32_t local_bytes = 0;  // of a thread
  std::uint64_t stack_limit = 0;  // what calls may be charged, where the stack grows
};

// ---- what handlers call ------------------------------------------------------------------------------------------

// Ends the launch (first failure wins).
void abort_launch(Warp& w, const Inst& i, LaunchStatus status, const std::string& what, Mask lanes);
const Inst* stopped(Warp& w, Stop why, const Inst* resume);
// Splits the running fragment: `lanes` go on at `pc`, in `frame`.
void add_fragment(Warp& w, const Inst* pc, Frame* frame, Mask lanes);
// At a join point: merges with fragments that wait there, gives way to those behind. Returns where to go on.
const Inst* reconverge(const Inst& i, Warp& w);
// After lanes changed (exit, return, split): chooses the fragment that runs next.
const Inst* next_fragment(Warp& w);
void exit_lanes(Warp& w, const Inst& i, Mask lanes);
void set_active(Warp& w, Mask lanes);

}  // namespace machine
