// Launches: chunks of blocks on worker threads, residency, deadlock, limits, counters.
#include <xmmintrin.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstring>
#include <mutex>

#include "../memory/pool.hpp"
#include "crew.hpp"
#include "kernel.hpp"
#include "schedule.hpp"
#include "undo.hpp"

namespace machine {
namespace {

// How many chunks a launch is cut into: 16, and up to 64 where each still has some blocks, so that the last chunks to end do
// not leave many cores idle. It does not depend on the cores that run them.
std::uint64_t chunks_of(std::uint64_t blocks) { return std::min(blocks, std::clamp<std::uint64_t>(blocks / 4, 16, 64)); }
// Rounds over all resident blocks in which every warp only polled and nothing changed, after which nothing will: this many
// full quanta, or this many rounds when the warps yield by themselves (a bounded retry must come to its end before).
constexpr std::uint64_t kIdleQuanta = 16;
constexpr unsigned kIdleRounds = 20'000;
// The same where a clock is read between the polls: a wait with a time limit must come to its end before, but a clock that
// only sets the pace of the polling (cuda::barrier) must not hide a deadlock. In warp instructions.
constexpr std::uint64_t kTimedIdle = 20'000'000;

constexpr unsigned kDefaultControl = 0x1f80;

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Blocks with their registers and storage, kept from launch to launch: fresh pages cost more than a small launch.
class BlockPool {
 public:
  static BlockPool& instance() {
    static BlockPool* pool = new BlockPool;  // outlives static destruction, as the address space does
    return *pool;
  }
  std::unique_ptr<Block> take() {
    std::lock_guard guard(lock_);
    if (spare_.empty()) return std::make_unique<Block>();
    // What this thread ran last lies in its own caches.
    auto best = std::find_if(spare_.rbegin(), spare_.rend(), [](const Spare& s) { return s.thread == thread_number(); });
    if (best == spare_.rend()) best = spare_.rbegin();
    auto block = std::move(best->block);
    spare_.erase(std::next(best).base());
    return block;
  }
  void give(std::unique_ptr<Block> block) {
    std::lock_guard guard(lock_);
    if (spare_.size() < kMost) {
      spare_.push_back({thread_number(), std::move(block)});
      return;
    }
    auto& space = AddressSpace::instance();
    if (block->shared != nullptr) space.on_chip_release(block->shared, block->shared_bytes);
    if (block->local != nullptr) space.on_chip_release(block->local, block->local_bytes);
  }

 private:
  static constexpr std::size_t kMost = 32;
  struct Spare {
    unsigned thread;
    std::unique_ptr<Block> block;
  };
  std::mutex lock_;
  std::vector<Spare> spare_;
};

struct Shared {  // of the workers of one launch
  std::chrono::steady_clock::time_point start;
  std::atomic<bool> failed{false};
};

std::uint32_t residency(const Program& program, const LaunchRequest& r, const Options& o) {
  if (!program.communicates && !r.cooperative) return 1;
  if (o.resident_blocks != 0) return o.resident_blocks;
  const std::uint64_t threads = std::max<std::uint64_t>(r.block.count(), 1);
  const std::uint64_t shared_limit = o.arch == Arch::sm_90 ? 233472 : 167936;
  const std::uint64_t shared = r.kernel->shared().declared + std::uint64_t{r.dynamic_shared} + 1024;
  std::uint64_t per_sm = std::min<std::uint64_t>(2048 / ((threads + 31) / 32 * 32), 32);
  per_sm = std::max<std::uint64_t>(std::min(per_sm, shared_limit / shared), 1);
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(per_sm * o.multiprocessors, 1u << 16));
}

void stall(Worker& k, const std::vector<Block*>& resident, LaunchStatus status, Fault fault, const std::string& what) {
  std::string detail = what;
  unsigned shown = 0;
  for (const Block* b : resident) {
    if (shown++ >= 4) {
      detail += "; and " + std::to_string(resident.size() - 4) + " more blocks";
      break;
    }
    detail += (shown == 1 ? ": " : "; ") + waiting(*b, 8);
  }
  // Barriers of whole blocks at which some wait in vain, because others have passed them by.
  for (Block* b : resident)
    for (std::uint32_t id = 0; id < b->barriers.size(); ++id)
      if (status == LaunchStatus::deadlock && b->passed && b->barriers[id].in_use && b->barriers[id].expected == 0) tell_passed(*b, id);
  if (k.observer != nullptr && !resident.empty()) {
    const Block& b = *resident.front();
    for (std::uint32_t n = 0; n < b.warp_count; ++n) {
      const Warp& w = *b.warps[n];
      if (w.others.empty()) continue;
      FaultEvent e;
      e.fault = fault;
      e.lanes = w.others.front().lanes;
      e.detail = detail;
      k.observer->fault(w.point(*w.others.front().pc, w.others.front().lanes), e);
      break;
    }
  }
  k.status = status;
  k.message = k.request->kernel->name() + ": " + detail;
}

}  // namespace

const Inst* set_mode(const Inst& i, Warp& w, Mask) {
  const auto mode = static_cast<std::uint32_t>(i.imm);
  if (w.worker->mode != mode) {
    w.worker->mode = mode;
    // Flush to zero covers results (FTZ) and operands (DAZ).
    _mm_setcsr(kDefaultControl | ((mode & 1) != 0 ? 0x8040u : 0u) | (mode >> 1 & 3) << 13);
  }
  return &i + 1;
}

namespace {

void run_blocks(Worker& k, Shared& shared, std::uint64_t first, std::uint64_t last, std::uint32_t limit) {
  std::vector<std::unique_ptr<Block>> pool;
  std::vector<Block*> resident, idle;
  std::vector<std::uint32_t> free_slots;
  std::uint64_t next = first, round = 0;
  unsigned quiet = 0;
  std::uint64_t changes = 0, quiet_since = 0, clock_since = 0;
  while ((next < last || !resident.empty()) && k.status == LaunchStatus::ok) {
    while (resident.size() < limit && next < last) {
      if (idle.empty()) {
        free_slots.push_back(static_cast<std::uint32_t>(pool.size()));
        pool.push_back(BlockPool::instance().take());
        idle.push_back(pool.back().get());
      }
      Block* b = idle.back();
      idle.pop_back();
      const std::uint32_t slot = free_slots.back();
      free_slots.pop_back();
      start_block(*b, k, next++, slot);
      resident.push_back(b);
    }
    bool any = false, polling = true, finished = false;
    ++round;
    for (std::size_t n = 0; n < resident.size() && k.status == LaunchStatus::ok; ++n) {
      Block& b = *resident[n];
      const bool ran = run_block(b, k, round);
      any |= ran;
      polling &= !ran || k.all_polling;
      if (b.done) {
        finish_block(b, k);
        finished = true;
        free_slots.push_back(b.info.slot);
        idle.push_back(&b);
        resident.erase(resident.begin() + static_cast<std::ptrdiff_t>(n));
        --n;
        // A freed slot is taken at once.
        if (limit > 1) break;
      }
    }
    if (k.status != LaunchStatus::ok) break;
    if (!any && !finished && !resident.empty()) {
      stall(k, resident, LaunchStatus::deadlock, Fault::deadlock, "deadlock");
      break;
    }
    const bool idle_round = polling && !finished && k.memory_changes == changes;
    changes = k.memory_changes;
    quiet = idle_round ? quiet + 1 : 0;
    if (quiet == 0) quiet_since = k.executed, clock_since = k.clock;
    const bool timed = k.clock != clock_since;
    const std::uint64_t patience = timed ? kTimedIdle : kIdleQuanta * k.options->quantum * std::max<std::uint64_t>(resident.size(), 1);
    if ((quiet >= kIdleRounds && !timed) || k.executed - quiet_since > patience) {
      stall(k, resident, LaunchStatus::deadlock, Fault::deadlock, "deadlock: every warp waits or polls memory that nobody changes");
      break;
    }
    const auto limit_instructions = k.options->instruction_limit;
    if (limit_instructions != 0 && k.executed > limit_instructions) {
      stall(k, resident, LaunchStatus::stalled, Fault::stalled, "more than " + std::to_string(limit_instructions) + " warp instructions");
      break;
    }
    if (k.options->timeout_s > 0 && seconds_since(shared.start) > k.options->timeout_s) {
      stall(k, resident, LaunchStatus::stalled, Fault::stalled, "still running after " + std::to_string(std::lround(k.options->timeout_s)) + " s");
      break;
    }
    if (shared.failed.load(std::memory_order_relaxed)) break;
  }
  // What was resident when the launch failed is over as well.
  for (Block* b : resident) finish_block(*b, k);
  for (auto& b : pool) BlockPool::instance().give(std::move(b));
  if (k.status != LaunchStatus::ok) shared.failed = true;
}

// What the workers of a launch counted and met, in the order of their chunks.
void gather(LaunchResult& result, const Program& program, const std::vector<Worker>& workers) {
  Counters& c = result.counters;
  std::vector<BlockCount> counts(program.block_count);
  for (const Worker& k : workers) {
    for (std::size_t b = 0; b < k.counts.size(); ++b) counts[b].warps += k.counts[b].warps, counts[b].lanes += k.counts[b].lanes;
    c.bytes_loaded += k.bytes_loaded;
    c.bytes_stored += k.bytes_stored;
    if (result.status == LaunchStatus::ok && k.status != LaunchStatus::ok) result.status = k.status, result.message = k.message;
    result.printed += k.printed;
  }
  for (const auto& f : program.functions)
    for (const auto& b : f.blocks) {
      const BlockCount& n = counts[b.id];
      c.warp_instructions += n.warps * b.length;
      c.thread_instructions += n.lanes * b.length;
      for (std::size_t s = 0; s < kClasses; ++s) c.by_class[s] += n.warps * b.classes[s];
    }
}

// Blocks, grid and memory of the request against what the kernel and the architecture allow.
std::string refusal(const LaunchRequest& r, const Options& o) {
  const auto& a = r.kernel->attributes();
  if (r.grid.count() == 0 || r.block.count() == 0) return "an empty grid or block";
  if (r.grid.x > 0x7fffffffu || r.grid.y > 65535 || r.grid.z > 65535) return "the grid is larger than the device allows";
  if (r.block.x > 1024 || r.block.y > 1024 || r.block.z > 64 || r.block.count() > 1024) return "the block is larger than the device allows";
  if (r.block.count() > a.max_threads) return "the block has more threads than .maxntid allows";
  if (a.required_block.x != 0 && !(a.required_block == r.block)) return "the block differs from .reqntid";
  if (r.cluster.count() > 1 || a.cluster.count() > 1) return "clusters of more than one block are not supported";
  if (r.params.size() < a.param_bytes) return "the parameters are " + std::to_string(r.params.size()) + " bytes, " + std::to_string(a.param_bytes) + " are needed";
  const std::uint64_t limit = o.arch == Arch::sm_90 ? 232448 : 166912;
  if (std::uint64_t{a.static_shared} + r.dynamic_shared > limit) return "more shared memory than the device has";
  return {};
}

}  // namespace

void Counters::add(const Counters& o) {
  blocks += o.blocks, warps += o.warps, threads += o.threads;
  warp_instructions += o.warp_instructions, thread_instructions += o.thread_instructions;
  for (std::size_t k = 0; k < kClasses; ++k) by_class[k] += o.by_class[k];
  bytes_loaded += o.bytes_loaded, bytes_stored += o.bytes_stored;
}

std::string_view class_name(InstructionClass c) {
  static constexpr std::string_view kNames[] = {
      "integer", "logic", "float32", "float64", "half", "conversion", "move", "predicate", "special", "load global", "store global",
      "load shared", "store shared", "load local", "store local", "load param", "load constant", "atomic", "async copy", "matrix",
      "shuffle", "barrier", "fence", "control", "other"};
  static_assert(std::size(kNames) == kClasses);
  return kNames[static_cast<std::size_t>(c)];
}

LaunchResult launch(const LaunchRequest& request, const Options& options, Observer* observer) {
  LaunchResult result;
  const auto* kernel = static_cast<const KernelImpl*>(request.kernel);
  const Program* program = nullptr;
  try {
    program = &kernel->program();
  } catch (const PtxError& error) {
    result.status = LaunchStatus::invalid_ptx;
    result.message = error.what();
    return result;
  }
  if (auto why = refusal(request, options); !why.empty()) {
    result.status = LaunchStatus::unsupported;
    result.message = kernel->name() + ": " + why;
    return result;
  }
  auto& space = AddressSpace::instance();
  const auto param_bytes = std::max<std::size_t>(kernel->attributes().param_bytes, 1);
  const Object* params = space.allocate(ObjectKind::param, param_bytes, 512, kernel->name() + " parameters", request.operation);
  if (params == nullptr) {
    result.status = LaunchStatus::unsupported;
    result.message = kernel->name() + ": no room for the parameters";
    return result;
  }
  if (!request.params.empty()) std::memcpy(reinterpret_cast<void*>(params->base), request.params.data(), std::min(request.params.size(), param_bytes));
  // The barrier of a cooperative grid: a zeroed word that %envreg1 and %envreg2 point at.
  const Object* workspace = program->grid_sync ? space.allocate(ObjectKind::param, 256, 512, "grid barrier", request.operation) : nullptr;

  LaunchInfo info;
  info.kernel = kernel;
  info.operation = request.operation;
  info.grid = request.grid;
  info.block = request.block;
  info.dynamic_shared = request.dynamic_shared;
  info.warps_per_block = static_cast<std::uint32_t>((request.block.count() + kWarp - 1) / kWarp);
  info.cooperative = request.cooperative;
  info.communicates = program->communicates || request.cooperative;
  info.params = params;
  info.stores = program->stores;
  info.resident_limit = residency(*program, request, options);
  const std::uint64_t blocks = request.grid.count();
  // A kernel whose threads all wait before they touch memory runs as if launched after the wait.
  const bool waited = program->waits_first && request.dependency_wait;
  const bool apart = !info.communicates && (waited || !program->waits_for_dependency || !request.dependency_wait);
  info.chunks = apart ? chunks_of(blocks) : 1;
  if (request.cooperative && blocks > info.resident_limit) {
    result.status = LaunchStatus::unsupported;
    result.message = kernel->name() + ": a cooperative grid of " + std::to_string(blocks) + " blocks does not fit the device, which holds " + std::to_string(info.resident_limit);
    space.release(params->base, request.operation);
    return result;
  }

  if (waited) request.dependency_wait();
  static std::atomic<std::uint64_t> launches{0};
  const std::uint64_t serial = ++launches;
  Shared shared;
  shared.start = std::chrono::steady_clock::now();
  const unsigned control = _mm_getcsr();
  for (;;) {
    if (observer != nullptr) observer->launch_begin(info);
    std::vector<std::unique_ptr<Observer>> forks(info.chunks);
    std::vector<Worker> workers(info.chunks);
    std::vector<UndoLog> undo(observer != nullptr && info.chunks > 1 ? info.chunks : 0);
    auto run_one = [&](std::uint64_t c) {
      if (observer != nullptr) forks[c] = observer->fork(c);
      Worker& k = workers[c];
      k.program = program;
      k.request = &request;
      k.options = &options;
      k.launch = &info;
      k.observer = forks[c].get();
      if (const Following f = observer != nullptr ? forks[c]->following() : Following::none; f != Following::none) {
        k.undefined = std::unique_ptr<Undefined>(new Undefined);
        k.memory_undefined = f == Following::memory;
      }
      k.undo = undo.empty() ? nullptr : &undo[c];
      k.counts.resize(program->block_count);
      k.params = reinterpret_cast<std::byte*>(params->base);
      k.dependency_passed = waited;
      k.serial = serial;
      k.grid_workspace = workspace != nullptr ? workspace->base : 0;
      run_blocks(k, shared, blocks * c / info.chunks, blocks * (c + 1) / info.chunks, info.resident_limit);
      if (forks[c] != nullptr) forks[c]->chunk_end();
      _mm_setcsr(kDefaultControl);
    };
    const std::uint64_t threads = std::min<std::uint64_t>(std::max(options.cores, 1u), info.chunks);
    if (threads <= 1) {
      for (std::uint64_t c = 0; c < info.chunks; ++c) run_one(c);
    } else {
      std::atomic<std::uint64_t> next{0};
      Crew::instance().run(static_cast<unsigned>(threads - 1), [&] {
        for (std::uint64_t c = next++; c < info.chunks; c = next++) run_one(c);
      });
    }
    _mm_setcsr(control);
    const bool valid = observer == nullptr || observer->join(forks);
    if (!valid && info.chunks > 1) {
      for (UndoLog& log : undo) log.restore();
      info.chunks = 1;
      result.repeated = true;
      shared.failed = false;
      continue;
    }
    gather(result, *program, workers);
    if (request.dependency_wait && std::none_of(workers.begin(), workers.end(), [](const Worker& k) { return k.dependency_passed; })) request.dependency_wait();
    break;
  }
  if (observer != nullptr) observer->launch_end(info);
  result.counters.blocks = blocks;
  result.counters.warps = blocks * info.warps_per_block;
  result.counters.threads = blocks * request.block.count();
  space.release(params->base, request.operation);
  if (workspace != nullptr) space.release(workspace->base, request.operation);
  return result;
}

}  // namespace machine
