// One run of a launch: its chunks on worker threads, under one seed. The real one, and the further schedules.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include "exec/machine.hpp"
#include "exec/program.hpp"
#include "exec/undo.hpp"
#include "exec/warp.hpp"

namespace machine {

// What all attempts of one launch have in common.
struct Launching {
  const LaunchRequest& request;
  const Options& options;
  const Program& program;
  Observer* observer = nullptr;
  LaunchInfo info;
  std::byte* params = nullptr;
  std::uint64_t grid_workspace = 0;
  std::uint64_t serial = 0;
  std::uint32_t local_bytes = 0;  // of a thread, with its stack
  std::uint64_t stack_limit = 0;
  bool waited = false;      // for the kernel that it depends on, before its first block
  bool fits = false;        // the whole grid is resident at once
  bool host_waits = false;  // no thread of the program was at work when it began
  std::chrono::steady_clock::time_point start{};
};

struct Attempt {
  std::vector<std::unique_ptr<Observer>> forks;
  std::vector<Worker> workers;
  std::vector<UndoLog> undo;

  Attempt(const Launching& launch, std::uint64_t chunks, bool undoes);
  std::uint64_t executed() const;
};

// ---- rounds.cpp
// Blocks of one chunk, in the order in which they start: [first, last) as `order` has them where it is not empty.
struct StartOrder {
  std::uint64_t first = 0, last = 0;
  std::vector<std::uint64_t> order;
  std::uint64_t at(std::uint64_t n) const { return order.empty() ? n : order[n - first]; }
};
// Runs them to their end on this thread, as chunk `chunk` of the attempt. `failed`: another chunk has, or this one
// does.
void run_chunk(const Launching& launch, Attempt& attempt, std::uint64_t chunk, std::uint64_t seed, StartOrder blocks,
               std::atomic<bool>& failed);

// ---- further_schedules.cpp
// Whether further schedules of this launch are to be tried. Counts it.
bool wants_further_schedules(const Launching& launch);
// Runs it again under further seeds, of which only what the checks find remains. `real` has run, and what it wrote is
// in memory before and after. Returns how many there were.
unsigned try_further_schedules(Launching& launch, Attempt& real);

}  // namespace machine
