#include "runtime/background.hpp"

#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "exec/crew.hpp"
#include "runtime/schedule.hpp"

namespace machine::runtime {
namespace {

constexpr auto sample = std::chrono::milliseconds(10);
constexpr int sleeping_samples = 3;  // all threads asleep for so long: the host waits for the device
constexpr int silent_samples = 200;  // or no runtime call for two seconds: it spins on memory

std::atomic<std::uint64_t> calls{0};
std::atomic<int> inside{0};
std::atomic<bool> watching{false};

// The state letter of /proc/self/task/TID/stat, which follows the command in parentheses.
char thread_state(const char* id) {
  std::string path = std::string("/proc/self/task/") + id + "/stat";
  std::FILE* file = std::fopen(path.c_str(), "r");
  if (!file) return 'X';
  char line[512];
  std::size_t length = std::fread(line, 1, sizeof line - 1, file);
  std::fclose(file);
  line[length] = '\0';
  const char* after = std::strrchr(line, ')');
  return after && after[1] ? after[2] : 'X';
}

// Threads in a runtime call, one entry a call.
struct Callers {
  std::mutex lock;
  std::vector<int> threads;
  static Callers*& instance() {
    static auto* only = new Callers;  // outlives static destruction
    return only;
  }
  bool has(int thread) {
    const std::lock_guard guard(lock);
    return std::find(threads.begin(), threads.end(), thread) != threads.end();
  }
};

// Threads of in_background(): one that is about to end is no thread of the program either.
struct Watchers {
  std::mutex lock;
  std::vector<int> threads;
  static Watchers& instance() {
    static auto* const only = new Watchers;
    return *only;
  }
  void add(int thread) {
    const std::lock_guard guard(lock);
    // An ended one's number may be given to a thread of the program.
    std::erase_if(threads,
                  [](int old) { return access(("/proc/self/task/" + std::to_string(old)).c_str(), F_OK) != 0; });
    threads.push_back(thread);
  }
  bool has(int thread) {
    const std::lock_guard guard(lock);
    return std::find(threads.begin(), threads.end(), thread) != threads.end();
  }
};

// Of the threads but this one that `counts` holds of.
template <class F>
HostState state_of_others(F counts) {
  DIR* tasks = opendir("/proc/self/task");
  if (!tasks) return HostState::runs;
  const int self = gettid();
  HostState state = HostState::waits;
  while (dirent* entry = readdir(tasks)) {
    const int thread = std::atoi(entry->d_name);
    if (thread == 0 || thread == self || !counts(thread)) continue;
    const char now = thread_state(entry->d_name);
    if (now == 'X' || now == 'Z') continue;
    state = now == 'S' ? std::max(state, HostState::sleeps) : HostState::runs;
    if (state == HostState::runs) break;
  }
  closedir(tasks);
  return state;
}

bool every_other_thread_sleeps() {
  return state_of_others([](int) { return true; }) != HostState::runs;
}

void watch() {
  std::uint64_t seen = calls;
  int asleep = 0;
  int silent = 0;
  for (;;) {
    std::this_thread::sleep_for(sample);
    if (inside > 0 || calls != seen) {
      seen = calls;
      asleep = silent = 0;
      continue;
    }
    ++silent;
    asleep = every_other_thread_sleeps() ? asleep + 1 : 0;
    if (asleep < sleeping_samples && silent < silent_samples) continue;
    asleep = silent = 0;
    Lock lock(state_mutex());
    if (schedule().pending() == 0) {
      watching = false;
      return;
    }
    if (calls == seen) schedule().settle(lock, Waits::no);
  }
}

}  // namespace

void in_background(std::function<void()> work) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);  // the program's signals stay with its own threads
  // From here on it is known not to be one of the program's threads.
  const auto known = std::make_shared<std::atomic<bool>>(false);
  std::thread([known, work = std::move(work)] {
    Watchers::instance().add(gettid());
    *known = true;
    known->notify_all();
    work();
  }).detach();
  known->wait(false);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void watch_in_background() {
  if (!watching.exchange(true)) in_background(watch);
}

std::uint64_t runtime_calls() { return calls; }

HostState host_state() {
  return state_of_others([](int thread) {
    return !Watchers::instance().has(thread) && !Crew::instance().has(thread) && !Callers::instance()->has(thread);
  });
}

InsideCall::InsideCall() {
  ++inside;
  ++calls;
  thread_local const int self = gettid();
  auto& [lock, threads] = *Callers::instance();
  const std::lock_guard guard(lock);
  threads.push_back(self);
}

InsideCall::~InsideCall() {
  --inside;
  thread_local const int self = gettid();
  auto& [lock, threads] = *Callers::instance();
  const std::lock_guard guard(lock);
  if (const auto at = std::find(threads.begin(), threads.end(), self); at != threads.end()) threads.erase(at);
}

void forget_background_after_fork() {
  watching = false;
  inside = 0;
  Callers::instance() = new Callers;  // another thread may have held the lock
}

}  // namespace machine::runtime
