// Catches the host that reads a result too early: host memory that a pending copy or set will write is sealed, and so
// is managed memory, and pinned memory of a few pages, that a pending kernel is given the address of.
//
// The first access of the host to a sealed page faults; the handler notes its address, opens the page and lets the
// access go on, so the program reads what it would have read: the old bytes. The note is reported as a load or store of
// the host, and the race check finds it unordered with the copy. Only pages that the pending work may write are
// sealed, so no other memory is touched; a system call on such a page fails with EFAULT instead of being noted.
#pragma once

#include <cstdint>

#include "runtime/schedule.hpp"
#include "runtime/work.hpp"

namespace machine::runtime {

// Seals what the work will write, if that is host memory, until the host has waited for it. State lock held.
void seal_destination(const Work& work, const TaskPtr& task);

// Around anything that looks at or writes host memory: opens all that is sealed and reports the noted accesses, then
// seals again what is still pending. State lock held.
void open_seals();
void close_seals();
// Tells the noted accesses only: what has been touched is open.
void hear_seals();

// While stream work runs: what is sealed is closed to all but the work. Only where there are protection keys.
void shield_seals();

// While a host function runs, what work that does not follow it will write stays sealed. State lock held.
void close_seals_for(const TaskPtr& host_function);
// Tells what it touched of that, as accesses of the operation that it is. State lock held, inside the running task.
void report_sealed_accesses(std::uint64_t operation, Observer& checks);

// For the handler of a memory fault: true when the address was sealed and is now open.
bool opened_by_host(std::uint64_t address, bool writes);

// Whether the process still uses the handler that calls opened_by_host; without it nothing may be sealed.
bool fault_handler_in_place();

}  // namespace machine::runtime
