// Sees the host's own stores to memory that it shares with the device: pinned, managed and registered.
//
// The host's program is not instrumented. But stream work runs late, so what the host stores between the submission
// of a piece of work and its execution shows as a difference between two looks at the memory. Each look happens where
// the host is in the runtime anyway. What differs is reported as a store of the host in the stretch of its program that
// ended there, and the race check then finds the pinned source that was overwritten before its copy was done. A store
// of the value that was there already is not seen, nor is a load.
#pragma once

#include "events/observer.hpp"
#include "memory/object.hpp"

namespace machine::runtime {

// Objects above this size are not looked at, and no more than this in all: a look costs time at every submission.
inline constexpr std::uint64_t kWatchedBytes = std::uint64_t{32} << 20;

// State lock held for all of these.
void watch_host_memory(const Object& object);
void forget_host_memory(std::uint64_t base);

// Tells the stores since the last look. Nothing may be running.
void look_at_host_memory();
// The same as stores of a host function, inside the running task.
void look_at_host_memory(std::uint64_t operation, Observer& checks);

// What changed since the last look was the device's doing.
void accept_host_memory();

}  // namespace machine::runtime
