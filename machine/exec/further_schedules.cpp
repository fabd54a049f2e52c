// A launch that communicates, tried under further seeds: a wait, a lock or an mbarrier that is wrong shows in some
// orders only. Memory is put back before each, so that only what the checks find remains. It costs some launches where
// the kernel is small, one or two where it is large, and is done ever more seldom for a launch that is made again and
// again.
#include <algorithm>
#include <atomic>
#include <bit>
#include <map>
#include <mutex>
#include <tuple>

#include "exec/attempt.hpp"

namespace machine {
namespace {

// Two are tried, one of a launch that costs so many warp instructions (a third of a second), and more as long as all
// together are cheap. The checks look at each lane of an atomic by itself, which costs as much as so many instructions.
constexpr std::uint64_t kAtomic = 30;
constexpr std::uint64_t kDear = 10'000'000, kCheap = 400'000;
// One schedule may take so much longer than the real one; one that polls more is given up.
constexpr std::uint64_t kLonger = 8, kSlack = 100'000;
// Blocks that cannot talk to each other are tried by themselves, and some of many do.
constexpr std::uint64_t kMostBlocks = 16;

// The first launch of a kernel with this shape, the second, the fourth, the eighth, ...
bool due(const LaunchRequest& r) {
  using Key = std::tuple<const Kernel*, std::uint64_t, std::uint64_t, std::uint32_t>;
  static std::mutex lock;
  static auto* const launches = new std::map<Key, std::uint64_t>;
  const std::lock_guard guard(lock);
  return std::has_single_bit(++(*launches)[{r.kernel, r.grid.count(), r.block.count(), r.dynamic_shared}]);
}

// What the host may look at right now must not go back and forth, and what it has written meanwhile must not be lost.
bool shared_with_host(const Launching& launch, const Attempt& real) {
  const bool host_waits = launch.host_waits && (!launch.request.host || launch.request.host() == HostState::waits);
  return std::any_of(real.undo.begin(), real.undo.end(), [&](const UndoLog& log) {
    return log.wrote_outside() || (!host_waits && log.wrote_host_memory());
  });
}

// It is the same on every machine, as time would not be.
std::uint64_t cost_of(const Launching& launch, const Attempt& attempt) {
  constexpr auto atomic = static_cast<std::size_t>(InstructionClass::atomic);
  std::uint64_t cost = attempt.executed();
  for (const Worker& k : attempt.workers)
    for (const Function& f : launch.program.functions)
      for (const BasicBlock& b : f.blocks)
        if (!k.counts.empty()) cost += kAtomic * k.counts[b.id].lanes * b.classes[atomic];
  return cost;
}

StartOrder some_blocks(const Launching& launch) {
  const std::uint64_t blocks = launch.request.grid.count();
  if (launch.info.communicates || blocks <= kMostBlocks) return {0, blocks, {}};
  StartOrder some{0, kMostBlocks, {}};
  for (std::uint64_t n = 0; n < kMostBlocks; ++n) some.order.push_back(n * (blocks - 1) / (kMostBlocks - 1));
  return some;
}

void exchange(Attempt& attempt) {
  for (UndoLog& log : attempt.undo) log.exchange();
}

}  // namespace

bool wants_further_schedules(const Launching& launch) {
  // What is allocated and freed cannot be put back.
  return launch.observer != nullptr && launch.options.schedules != 0 && !launch.program.uses_heap &&
         (launch.info.communicates || launch.program.waits_in_block) && due(launch.request);
}

unsigned try_further_schedules(Launching& launch, Attempt& real) {
  const bool ended = std::all_of(real.workers.begin(), real.workers.end(),
                                 [](const Worker& k) { return k.status == LaunchStatus::ok; });
  if (!ended || !launch.observer->clean(real.forks) || shared_with_host(launch, real)) return 0;
  const std::uint64_t took = real.executed();
  const bool dear = cost_of(launch, real) > kDear;
  std::uint64_t spent = 0;
  unsigned tried = 0;
  exchange(real);
  for (bool clean = true; clean && tried < launch.options.schedules;) {
    if (tried >= (dear ? 1 : 2) && spent > kCheap) break;
    ++tried;
    Attempt attempt(launch, 1, true);
    std::atomic<bool> failed{false};
    attempt.workers[0].allowance = took * kLonger + kSlack;
    run_chunk(launch, attempt, 0, launch.options.seed + tried, some_blocks(launch), failed);
    clean = launch.observer->clean(attempt.forks);
    launch.observer->tried(attempt.forks, launch.options.seed + tried);
    spent += cost_of(launch, attempt);
    for (UndoLog& log : attempt.undo) log.restore();
  }
  exchange(real);
  return tried;
}

}  // namespace machine
