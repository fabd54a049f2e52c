#include "runtime/background.hpp"

#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <string>
#include <thread>

#include "runtime/schedule.hpp"

namespace machine::runtime {
namespace {

constexpr auto sample = std::chrono::milliseconds(10);
constexpr int sleeping_samples = 3;   // all threads asleep for so long: the host waits for the device
constexpr int silent_samples = 200;   // or no runtime call for two seconds: it spins on memory

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

bool every_other_thread_sleeps() {
  DIR* tasks = opendir("/proc/self/task");
  if (!tasks) return false;
  const std::string self = std::to_string(syscall(SYS_gettid));
  bool asleep = true;
  while (dirent* entry = readdir(tasks)) {
    if (entry->d_name[0] == '.' || self == entry->d_name) continue;
    char state = thread_state(entry->d_name);
    if (state != 'S' && state != 'X' && state != 'Z') asleep = false;
  }
  closedir(tasks);
  return asleep;
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
    if (calls == seen) schedule().settle(lock);
  }
}

}  // namespace

void watch_in_background() {
  if (watching.exchange(true)) return;
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);  // the program's signals stay with its own threads
  std::thread(watch).detach();
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

InsideCall::InsideCall() {
  ++inside;
  ++calls;
}

InsideCall::~InsideCall() { --inside; }

void forget_background_after_fork() {
  watching = false;
  inside = 0;
}

}  // namespace machine::runtime
