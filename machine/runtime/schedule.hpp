// When stream work runs: as late as synchronisation allows, in a seeded order, one piece at a time.
//
// A task (kernel, copy, set, host function, event record) knows the tasks that it must follow. Nothing runs at
// submission. A host call that waits for a task runs that task and all that it follows, choosing among those that
// are ready by the seed; the rest stays pending. So work that the program forgot to wait for has not happened when its
// results are read.
//
// Two things bound the lateness, as on hardware: a queue that is too long, and a host that waits for the device
// without a runtime call (a condition variable signalled by a host function, a flag in pinned memory). The second is
// served by a background thread (background.hpp).
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <vector>

#include "events/observer.hpp"

namespace machine::runtime {

struct Task;
using TaskPtr = std::shared_ptr<Task>;

struct Task {
  Operation operation;         // what the observers hear; id 0 for a marker (event record, wait), which they do not
  std::vector<TaskPtr> after;  // emptied once this is done
  std::vector<std::uint64_t> order;  // what a follower is ordered after: the own id, or a marker's inherited ones
  std::function<void(Task&)> body;   // runs with the state unlocked; empty for a marker
  TaskPtr released_early;            // programmatic launch: the kernel that griddepcontrol.wait waits for
  bool overtakes = false;            // it begins before that kernel has run, which runs inside it at the wait
  bool is_host_function = false;
  bool done = false;
  bool joined = false;  // done, and the host may read what it wrote
  std::chrono::steady_clock::time_point finished;
  std::uint64_t sequence = 0;  // order of submission
  std::uint64_t mark = 0;      // visited by the walk with this number
};

// Held while runtime state is looked at or changed. Never held while a task runs.
using Lock = std::unique_lock<std::mutex>;
std::mutex& state_mutex();

// Whether whoever makes a task run may read what it writes: not one that only polls, and not one that spins on memory.
enum class Waits { yes, no };

class Schedule {
 public:
  explicit Schedule(std::uint64_t seed) : random_(seed) {}

  // Queues a task after `task.after` (which may hold finished ones and nullptr) and after the host's program so far.
  void submit(const TaskPtr& task, Lock& lock);

  // Runs the task and whatever it follows; the host's program goes on after it.
  void wait_for(const TaskPtr& task, Lock& lock);

  // Runs all that is pending (cudaDeviceSynchronize).
  void wait_for_all(Lock& lock);

  // Runs all that is pending without ordering the host's program after it.
  void settle(Lock& lock, Waits waits = Waits::yes);

  // From inside a running kernel that was launched programmatically: the kernel that it waits for runs now, unless it
  // has run. Nothing else of the schedule moves meanwhile.
  void run_inside(const TaskPtr& earlier);

  // One ready piece of what the task needs: the polling calls make progress by it. A kernel that waits for the host is
  // left running in the background.
  void nudge(const TaskPtr& task, Lock& lock);

  // The running kernel waits for the host: polling calls return. True when one has waited for it. State lock not held.
  bool release_queries();

  // The process ends: pending host functions are dropped, the rest runs, so that its faults are seen.
  void drain_at_exit(Lock& lock);

  std::size_t pending() const { return pending_.size(); }
  bool running() const { return running_; }

 private:
  std::vector<TaskPtr> ordered_closure(const std::vector<TaskPtr>& targets);
  void run(const TaskPtr& task, Lock& lock, Waits waits = Waits::yes);
  void run_all(const std::vector<TaskPtr>& order, Lock& lock, Waits waits = Waits::yes);
  void join(const std::vector<std::uint64_t>& ids);
  void unseal_behind(std::vector<std::uint64_t> ids);
  void hear_host();
  void watch_kernel(const TaskPtr& kernel, Lock& lock);
  void drop_finished();

  std::vector<TaskPtr> pending_;
  std::map<std::uint64_t, std::vector<std::uint64_t>> last_on_stream_;  // ids that a device-wide wait joins
  std::map<std::uint64_t, TaskPtr> ahead_;  // done since the host last waited for them or for what follows them
  std::condition_variable progressed_;
  bool running_ = false;
  bool host_awaited_ = false;  // the running kernel cannot go on without the host
  unsigned queries_ = 0;       // polling calls that wait for the running kernel
  std::uint64_t walk_ = 0;
  std::uint64_t submitted_ = 0;
  std::mt19937_64 random_;
};

Schedule& schedule();

// True on a thread that is running a host function of the program.
bool inside_host_function();

}  // namespace machine::runtime
