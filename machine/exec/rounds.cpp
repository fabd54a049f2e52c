// The blocks of a chunk round by round: who starts, who has a turn, when a grid is stuck.
#include <xmmintrin.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <mutex>
#include <numeric>
#include <thread>
#include <utility>

#include "exec/attempt.hpp"
#include "exec/fragments.hpp"
#include "exec/stillness.hpp"
#include "exec/undefined.hpp"
#include "memory/pool.hpp"

namespace machine {
namespace {

constexpr unsigned kDefaultControl = 0x1f80;
// A host whose threads all sleep has that long to wake and write what a kernel waits for.
constexpr double kSleepingHost = 60;

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
  std::unique_ptr<Block> acquire() {
    std::lock_guard guard(lock_);
    if (spare_.empty()) return std::make_unique<Block>();
    // What this thread ran last lies in its own caches.
    auto best =
        std::find_if(spare_.rbegin(), spare_.rend(), [](const Spare& s) { return s.thread == thread_number(); });
    if (best == spare_.rend()) best = spare_.rbegin();
    auto block = std::move(best->block);
    spare_.erase(std::next(best).base());
    return block;
  }
  void release(std::unique_ptr<Block> block) {
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
      if (status == LaunchStatus::deadlock && b->passed && b->barriers[id].in_use && b->barriers[id].expected == 0)
        report_passed(*b, id);
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

// A grid that polls memory of the host is not stuck while the host may still write it.
class PatienceWithHost {
 public:
  bool lasts(const Launching& launch, const Worker& k) {
    if (!k.host_polled || !launch.request.host) return false;
    const bool released = launch.request.release_host && launch.request.release_host();
    const HostState host = released ? HostState::runs : launch.request.host();
    // What the host wrote just before it began to wait came after the last poll: that is looked at once more.
    if (host == HostState::waits) return !std::exchange(waited_, true);
    waited_ = false;
    if (host == HostState::runs) asleep_since_ = std::chrono::steady_clock::now();
    if (seconds_since(asleep_since_) > kSleepingHost) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return true;
  }
  void renew() { asleep_since_ = std::chrono::steady_clock::now(), waited_ = false; }

 private:
  bool waited_ = false;  // when it was last looked at
  std::chrono::steady_clock::time_point asleep_since_ = std::chrono::steady_clock::now();
};

void run_blocks(const Launching& launch, Worker& k, std::atomic<bool>& failed, const StartOrder& blocks) {
  std::vector<std::unique_ptr<Block>> pool;
  std::vector<Block*> resident;
  std::uint64_t next = blocks.first;
  Stillness still;
  PatienceWithHost patience;
  const std::uint32_t limit = launch.info.resident_limit;
  while (resident.size() < limit && next < blocks.last) {
    pool.push_back(BlockPool::instance().acquire());
    resident.push_back(pool.back().get());
    start_block(*resident.back(), k, blocks.at(next++), static_cast<std::uint32_t>(pool.size() - 1));
  }
  while (!resident.empty() && k.status == LaunchStatus::ok) {
    bool any = false, moved = false;
    if (k.turns.permuted()) k.turns.shuffle(resident.data(), resident.size());
    for (std::size_t n = 0; n < resident.size() && k.status == LaunchStatus::ok; ++n) {
      Block& b = *resident[n];
      any |= run_block(b, k);
      if (!b.done) continue;
      finish_block(b, k);
      moved = true;
      // A freed slot is used again at once.
      if (next < blocks.last && k.status == LaunchStatus::ok) start_block(b, k, blocks.at(next++), b.info.slot);
      else resident.erase(resident.begin() + static_cast<std::ptrdiff_t>(n--));
    }
    if (k.status != LaunchStatus::ok || resident.empty()) break;
    if (!any && !moved) {
      stall(k, resident, LaunchStatus::deadlock, Fault::deadlock, "deadlock");
      break;
    }
    if (moved) patience.renew();
    if (still.reached(k, resident, moved)) {
      if (!patience.lasts(launch, k)) {
        stall(k, resident, LaunchStatus::deadlock, Fault::deadlock,
              "deadlock: every warp waits or polls memory that nobody changes");
        break;
      }
      still.restart(k);
    }
    if (k.allowance != 0 && k.executed > k.allowance) break;
    const auto limit_instructions = k.options->instruction_limit;
    if (limit_instructions != 0 && k.executed > limit_instructions) {
      stall(k, resident, LaunchStatus::stalled, Fault::stalled,
            "more than " + std::to_string(limit_instructions) + " warp instructions");
      break;
    }
    if (k.options->timeout_s > 0 && seconds_since(launch.start) > k.options->timeout_s) {
      stall(k, resident, LaunchStatus::stalled, Fault::stalled,
            "still running after " + std::to_string(std::lround(k.options->timeout_s)) + " s");
      break;
    }
    if (failed.load(std::memory_order_relaxed)) break;
  }
  // What was resident when the launch ended early is over as well.
  for (Block* b : resident) finish_block(*b, k);
  for (auto& b : pool) BlockPool::instance().release(std::move(b));
  if (k.status != LaunchStatus::ok) failed = true;
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

Attempt::Attempt(const Launching& launch, std::uint64_t chunks, bool undoes)
    : forks(chunks), workers(chunks), undo(launch.observer != nullptr && undoes ? chunks : 0) {}

std::uint64_t Attempt::executed() const {
  return std::accumulate(workers.begin(), workers.end(), std::uint64_t{0},
                         [](std::uint64_t sum, const Worker& k) { return sum + k.executed; });
}

void run_chunk(const Launching& launch, Attempt& attempt, std::uint64_t chunk, std::uint64_t seed, StartOrder blocks,
               std::atomic<bool>& failed) {
  if (launch.observer != nullptr) attempt.forks[chunk] = launch.observer->fork(chunk);
  Worker& k = attempt.workers[chunk];
  k.program = &launch.program;
  k.request = &launch.request;
  k.options = &launch.options;
  k.launch = &launch.info;
  k.observer = attempt.forks[chunk].get();
  if (const Following f = k.observer != nullptr ? k.observer->following() : Following::none; f != Following::none) {
    k.undefined = std::unique_ptr<Undefined>(new Undefined);
    k.memory_undefined = f == Following::memory;
  }
  k.undo = attempt.undo.empty() ? nullptr : &attempt.undo[chunk];
  k.counts.resize(launch.program.block_count);
  k.params = launch.params;
  k.dependency_passed = launch.waited;
  k.serial = launch.serial;
  k.local_bytes = launch.local_bytes;
  k.stack_limit = launch.stack_limit;
  k.grid_workspace = launch.grid_workspace;
  k.turns.begin(seed, blocks.first, launch.options.quantum);
  // A larger grid starts in order: look-back scans and serial split-K rely on it.
  if (k.turns.permuted() && launch.fits) {
    if (blocks.order.empty()) {
      blocks.order.resize(blocks.last - blocks.first);
      std::iota(blocks.order.begin(), blocks.order.end(), blocks.first);
    }
    k.turns.shuffle(blocks.order.data(), blocks.order.size());
  }
  run_blocks(launch, k, failed, blocks);
  if (k.observer != nullptr) k.observer->chunk_end();
  _mm_setcsr(kDefaultControl);
}

}  // namespace machine
