// Threads that help to run a launch, kept from one launch to the next: starting one costs as much as a small launch.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <vector>

namespace machine {

class Crew {
 public:
  static Crew& instance();
  // Calls `work` on this thread and on up to `helpers` others, and returns when every call has; what one of them threw
  // is thrown then. A helper that wakes too late to find anything is not waited for, so `work` must take its share
  // piece by piece. While the crew is busy (a launch inside a launch) this thread works alone.
  void run(unsigned helpers, const std::function<void()>& work);

  // Whether the thread with this number of the system is one of the helpers.
  bool has(int thread);

 private:
  bool start_helper();
  void help();
  void attempt(const std::function<void()>& work);
  std::mutex lock_;
  std::condition_variable begin_, end_;
  const std::function<void()>* work_ = nullptr;
  std::uint64_t round_ = 0;
  std::exception_ptr failure_;
  std::mutex names_;
  std::vector<int> threads_;  // of the helpers
  std::atomic<unsigned> named_{0};
  unsigned started_ = 0, wanted_ = 0;
  std::atomic<unsigned> working_{0};
};

}  // namespace machine
