#include "runtime/schedule.hpp"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "runtime/background.hpp"
#include "runtime/host_guard.hpp"
#include "runtime/host_seal.hpp"
#include "runtime/host_watch.hpp"
#include "runtime/options.hpp"
#include "runtime/session.hpp"

namespace machine::runtime {
namespace {

// A hardware queue holds about a thousand launches before a launch call blocks.
constexpr std::size_t kQueueDepth = 1024;
constexpr std::size_t kAhead = 4096;  // done tasks that the host may yet be ordered after; older ones count as joined

// A query of a kernel that waits for the host gives it that long to go on.
constexpr auto kBetweenQueries = std::chrono::microseconds(100);

thread_local bool in_host_function = false;

// A programmatic launch may begin before the kernel ahead of it has run. It does when nothing but values is looked at:
// the checks see the missing order anyway, and hear of one launch at a time. Of a chain of such launches every other
// one overtakes, so that none nests deeper than one.
bool overtakes(const Task& task) {
  const TaskPtr& earlier = task.released_early;
  return earlier && !earlier->done && !earlier->overtakes && earlier->body && !observer();
}

}  // namespace

std::mutex& state_mutex() {
  static std::mutex* const mutex = new std::mutex;  // outlives every static destructor of the program
  return *mutex;
}

Schedule& schedule() {
  static Schedule* const only = new Schedule(options().seed);
  return *only;
}

bool inside_host_function() { return in_host_function; }

// What the host did since the last look was in the stretch of its program that ends here.
void Schedule::hear_host() {
  if (running_) return;
  open_seals();
  look_at_host_memory();
}

void Schedule::submit(const TaskPtr& task, Lock& lock) {
  hear_host();
  task->sequence = ++submitted_;
  std::erase(task->after, nullptr);
  auto& ids = task->operation.after;
  ids.push_back(host_operation());
  for (const auto& other : task->after) {
    // A programmatic launch follows what its predecessor followed; the predecessor itself only from the wait on.
    const auto& followed = other == task->released_early ? other->operation.after : other->order;
    ids.insert(ids.end(), followed.begin(), followed.end());
  }
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  if (task->body) {
    task->operation.id = next_operation_id();
    task->order.push_back(task->operation.id);
  } else {
    task->order = ids;
  }
  // A task is ordered after a programmatic launch and after what that launch did not wait for.
  if (task->released_early)
    task->order.insert(task->order.end(), task->released_early->order.begin(), task->released_early->order.end());
  last_on_stream_[task->operation.stream] = task->order;
  if (overtakes(*task)) {
    task->overtakes = true;
    std::erase(task->after, task->released_early);
    task->after.insert(task->after.end(), task->released_early->after.begin(), task->released_early->after.end());
  }
  std::erase_if(task->after, [](const TaskPtr& other) { return other->done; });
  host_went_on();
  if (!running_) close_seals();
  pending_.push_back(task);
  if (pending_.size() > kQueueDepth) {
    for (const auto& next : ordered_closure({pending_[kQueueDepth / 2]})) run(next, lock);
    drop_finished();
  }
  watch_in_background();
}

// Kahn's algorithm over what the targets still need, drawing the next one among the ready ones.
std::vector<TaskPtr> Schedule::ordered_closure(const std::vector<TaskPtr>& targets) {
  struct Node {
    TaskPtr task;
    std::size_t waits_for = 0;
    std::vector<std::size_t> followers;
  };
  ++walk_;
  std::vector<TaskPtr> stack;
  auto reach = [&](const TaskPtr& task) {
    if (!task || task->done || task->mark == walk_) return;
    task->mark = walk_;
    stack.push_back(task);
  };
  for (const auto& target : targets) reach(target);
  while (!stack.empty()) {
    TaskPtr next = std::move(stack.back());
    stack.pop_back();
    for (const auto& other : next->after) reach(other);
  }
  // In order of submission, so that the draw depends on the program and the seed alone.
  std::vector<Node> nodes;
  std::unordered_map<const Task*, std::size_t> position;
  for (const auto& task : pending_)
    if (task->mark == walk_ && !task->done) {
      position[task.get()] = nodes.size();
      nodes.push_back({task, 0, {}});
    }
  std::vector<std::size_t> ready;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    for (const auto& other : nodes[i].task->after)
      if (!other->done) {
        nodes[position.at(other.get())].followers.push_back(i);
        ++nodes[i].waits_for;
      }
  }
  // The overtaken kernel runs inside the one that overtakes it, or after it.
  for (std::size_t i = 0; i < nodes.size(); ++i)
    if (nodes[i].task->overtakes)
      if (auto earlier = position.find(nodes[i].task->released_early.get()); earlier != position.end()) {
        nodes[i].followers.push_back(earlier->second);
        ++nodes[earlier->second].waits_for;
      }
  for (std::size_t i = 0; i < nodes.size(); ++i)
    if (nodes[i].waits_for == 0) ready.push_back(i);
  std::vector<TaskPtr> order;
  while (!ready.empty()) {
    std::size_t pick = ready.size() == 1 ? 0 : random_() % ready.size();
    std::size_t node = ready[pick];
    ready.erase(ready.begin() + static_cast<std::ptrdiff_t>(pick));
    order.push_back(nodes[node].task);
    for (std::size_t follower : nodes[node].followers)
      if (--nodes[follower].waits_for == 0) ready.push_back(follower);
  }
  return order;
}

void Schedule::run(const TaskPtr& task, Lock& lock, Waits waits) {
  progressed_.wait(lock, [&] { return !running_ || task->done; });
  if (task->done) return;
  // Another thread may have gone ahead in another order while this one waited.
  for (const auto& other : std::vector<TaskPtr>(task->after)) {
    run(other, lock, waits);
    if (task->done) return;
  }
  if (running_) return run(task, lock, waits);
  if (task->body) {
    open_seals();
    look_at_host_memory();
    running_ = true;
    notify_all();
    if (task->is_host_function) {
      close_seals_for(task);
      lock.unlock();
      in_host_function = true;
      task->body(*task);
      in_host_function = false;
      lock.lock();
      accept_host_memory();
    } else {
      shield_seals();
      lock.unlock();
      DeviceAccess access;
      task->body(*task);
      lock.lock();
      accept_host_memory();
    }
    running_ = host_awaited_ = false;
    hear_seals();
  }
  const bool ran = static_cast<bool>(task->body);
  task->done = true;
  // A host function may wake who waits for what it follows.
  if (task->is_host_function) unseal_behind(task->operation.after);
  if (ran) {
    task->joined = waits == Waits::yes;
    ahead_[task->operation.id] = task;
    if (ahead_.size() > kAhead) {
      ahead_.begin()->second->joined = true;
      ahead_.erase(ahead_.begin());
    }
  }
  if (ran) close_seals();
  task->finished = std::chrono::steady_clock::now();
  task->after.clear();
  task->body = nullptr;
  progressed_.notify_all();
}

void Schedule::run_inside(const TaskPtr& earlier) {
  if (earlier->done) return;
  earlier->body(*earlier);
  Lock lock(state_mutex());
  earlier->done = true;
  earlier->finished = std::chrono::steady_clock::now();
  earlier->after.clear();
}

void Schedule::drop_finished() {
  std::erase_if(pending_, [](const TaskPtr& task) { return task->done; });
}

void Schedule::wait_for(const TaskPtr& task, Lock& lock) {
  if (!task) return;
  run_all(ordered_closure({task}), lock);
  join(task->order);
}

void Schedule::wait_for_all(Lock& lock) {
  auto everything = std::exchange(last_on_stream_, {});
  settle(lock);
  for (const auto& [stream, ids] : everything) join(ids);
}

// The host's program goes on after these operations and all that they follow.
void Schedule::join(const std::vector<std::uint64_t>& ids) {
  host_joins(ids);
  unseal_behind(ids);
  if (!running_) close_seals();
}

// What these operations follow is no secret to the host any more.
void Schedule::unseal_behind(std::vector<std::uint64_t> stack) {
  while (!stack.empty()) {
    const auto at = ahead_.find(stack.back());
    stack.pop_back();
    if (at == ahead_.end()) continue;
    const TaskPtr task = std::move(at->second);
    ahead_.erase(at);
    task->joined = true;
    stack.insert(stack.end(), task->operation.after.begin(), task->operation.after.end());
  }
}

void Schedule::settle(Lock& lock, Waits waits) {
  run_all(ordered_closure(std::vector<TaskPtr>(pending_)), lock, waits);
}

void Schedule::run_all(const std::vector<TaskPtr>& order, Lock& lock, Waits waits) {
  // What runs hears the host before it begins.
  if (std::none_of(order.begin(), order.end(), [](const TaskPtr& task) { return static_cast<bool>(task->body); }))
    hear_host();
  for (const auto& next : order) run(next, lock, waits);
  drop_finished();
  if (!running_) close_seals();
}

void Schedule::nudge(const TaskPtr& task, Lock& lock) {
  if (!task || task->done) return;
  const auto order = ordered_closure({task});
  const bool kernel = running_ || (!order.empty() && order.front()->operation.kind == OperationKind::kernel);
  if (kernel) watch_kernel(order.empty() ? nullptr : order.front(), lock);
  else if (!order.empty()) run(order.front(), lock, Waits::no);
  drop_finished();
}

// A kernel that needs nothing of the host has run when this returns, so that a query answers the same in every run.
void Schedule::watch_kernel(const TaskPtr& kernel, Lock& lock) {
  ++queries_;
  progressed_.wait(lock, [&] { return !running_ || host_awaited_; });
  if (running_) {
    // What the host has answered meanwhile takes time.
    progressed_.wait_for(lock, kBetweenQueries, [&] { return !running_; });
  } else if (kernel && !kernel->done) {
    in_background([this, kernel] {
      Lock own(state_mutex());
      run(kernel, own, Waits::no);
    });
    progressed_.wait(lock, [&] { return kernel->done || (running_ && host_awaited_); });
  }
  --queries_;
}

bool Schedule::release_queries() {
  const Lock lock(state_mutex());
  host_awaited_ = true;
  progressed_.notify_all();
  return queries_ != 0;
}

void Schedule::drain_at_exit(Lock& lock) {
  for (const auto& task : pending_)
    if (task->is_host_function) task->body = nullptr;
  wait_for_all(lock);
}

}  // namespace machine::runtime
