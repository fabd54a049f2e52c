// Progress for a host that waits for the device without calling the runtime.
#pragma once

#include <cstdint>
#include <functional>

#include "exec/machine.hpp"

namespace machine::runtime {

// Makes sure that the background thread watches while work is pending. Cheap; called at every submission.
void watch_in_background();

// Does it on a thread that is none of the program's.
void in_background(std::function<void()> work);

// The number of runtime calls so far, and those being inside one now: silence is measured by them.
class InsideCall {
 public:
  InsideCall();
  ~InsideCall();
  InsideCall(const InsideCall&) = delete;
  InsideCall& operator=(const InsideCall&) = delete;
};

// How many there have been.
std::uint64_t runtime_calls();

// What the program's threads do that neither wait in a runtime call nor belong to the machine.
HostState host_state();

// A forked child has no background thread any more.
void forget_background_after_fork();

}  // namespace machine::runtime
