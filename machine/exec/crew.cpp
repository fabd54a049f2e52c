#include "exec/crew.hpp"

#include <signal.h>
#include <unistd.h>
#include <xmmintrin.h>

#include <algorithm>
#include <system_error>
#include <thread>
#include <utility>

namespace machine {
namespace {

constexpr unsigned kPatience = 500;  // pauses: some 20 us

}  // namespace

Crew& Crew::instance() {
  // Never destroyed: its threads sleep on it until the process ends. The child of a fork() has none of them, and
  // launches nothing: a device does not follow a fork.
  static Crew* crew = new Crew;
  return *crew;
}

void Crew::run(unsigned helpers, const std::function<void()>& work) {
  {
    std::unique_lock guard(lock_);
    if (work_ != nullptr) {
      guard.unlock();
      return work();
    }
    while (started_ < helpers && start_helper()) {
    }
    work_ = &work;
    wanted_ = helpers;
    ++round_;
  }
  begin_.notify_all();
  attempt(work);
  // Helpers mostly are about to end, and to sleep and be woken takes longer.
  for (unsigned n = 0; n < kPatience && working_.load(std::memory_order_relaxed) != 0; ++n) _mm_pause();
  std::unique_lock guard(lock_);
  wanted_ = 0;
  end_.wait(guard, [&] { return working_ == 0; });
  work_ = nullptr;
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
}

void Crew::attempt(const std::function<void()>& work) {
  try {
    work();
  } catch (...) {
    std::lock_guard guard(lock_);
    if (!failure_) failure_ = std::current_exception();
  }
}

// The program's signals are not for helpers, but faults of the kernel that they run are. False when the system has no
// thread to give: there are fewer helpers then.
bool Crew::start_helper() {
  sigset_t kept, before;
  sigfillset(&kept);
  for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT}) sigdelset(&kept, fault);
  pthread_sigmask(SIG_SETMASK, &kept, &before);
  bool started = true;
  try {
    std::thread([this] { help(); }).detach();
    named_.wait(started_++);  // from here on it is known not to be one of the program's threads
  } catch (const std::system_error&) {
    started = false;
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return started;
}

bool Crew::has(int thread) {
  const std::lock_guard guard(names_);
  return std::find(threads_.begin(), threads_.end(), thread) != threads_.end();
}

void Crew::help() {
  {
    const std::lock_guard guard(names_);
    threads_.push_back(gettid());
  }
  ++named_;
  named_.notify_one();
  std::unique_lock guard(lock_);
  for (std::uint64_t seen = 0;;) {
    begin_.wait(guard, [&] { return round_ != seen && wanted_ > 0; });
    seen = round_;
    --wanted_;
    ++working_;
    const auto& work = *work_;
    guard.unlock();
    attempt(work);
    guard.lock();
    if (--working_ == 0) end_.notify_one();
  }
}

}  // namespace machine
