#include "runtime/exit.hpp"

#include <pthread.h>
#include <signal.h>
#include <ucontext.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>

#include "runtime/api.hpp"
#include "runtime/background.hpp"
#include "runtime/host_guard.hpp"
#include "runtime/host_seal.hpp"
#include "runtime/schedule.hpp"
#include "runtime/session.hpp"

namespace machine::runtime {
namespace {

constexpr unsigned kReportSeconds = 20;

std::atomic<bool> forked{false};
std::atomic<bool> watching{false};

void end_normally() {
  if (forked || !watching) return;
  {
    InsideCall inside;
    Lock lock(state_mutex());
    if (!context_error()) schedule().drain_at_exit(lock);
  }
  finish_report();
}

bool was_write([[maybe_unused]] void* context) {
#ifdef __x86_64__
  constexpr greg_t kWriteFault = 2;
  return static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_ERR] & kWriteFault;
#else
  return false;
#endif
}

// A program that dies of a signal still gets its findings. The signal then takes its usual course, so that the
// exit status tells the truth.
void end_by_signal(int number, siginfo_t* info, void* context) {
  if (number == SIGSEGV && opened_by_host(reinterpret_cast<std::uint64_t>(info->si_addr), was_write(context))) return;
  signal(number, SIG_DFL);
  if (!forked) {
    alarm(kReportSeconds);  // a report that hangs on a lock of the dying thread ends with the process
    const auto address = reinterpret_cast<std::uint64_t>(info->si_addr);
    if (number == SIGSEGV && is_guarded(address)) report_host_dereference(address);
    cut_short_report(number);
  }
  raise(number);
}

void watch_signals() {
  for (int number : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTERM, SIGINT}) {
    struct sigaction now{};
    if (sigaction(number, nullptr, &now) != 0 || now.sa_handler != SIG_DFL)
      continue;  // the program's own handler stays
    struct sigaction ours{};
    ours.sa_sigaction = end_by_signal;
    ours.sa_flags = SA_NODEFER | SA_SIGINFO;
    sigaction(number, &ours, nullptr);
  }
}

// Tells the suite that this program has the CPU device for its runtime, and not another one.
[[gnu::constructor]] void at_load() {
  if (std::getenv("VERIFY_MACHINE") != nullptr) mark_loaded();
}

void child_of_fork() {
  forked = true;
  forget_background_after_fork();
}

// Runs after the program's own exit handlers, which may still call the runtime.
[[gnu::destructor]] void at_unload() { end_normally(); }

}  // namespace

bool after_fork() { return forked; }

bool fault_handler_in_place() {
  struct sigaction now{};
  return sigaction(SIGSEGV, nullptr, &now) == 0 && now.sa_sigaction == end_by_signal;
}

void refuse(const std::string& line) {
  std::fflush(nullptr);
  if (!finish_report(line)) std::fprintf(stderr, "========= CPU device: %s\n", line.c_str());
  std::fflush(nullptr);
  _exit(kNothingVerified);
}

void watch_process_end() {
  if (watching.exchange(true)) return;
  pthread_atfork(nullptr, nullptr, child_of_fork);
  watch_signals();
}

}  // namespace machine::runtime
