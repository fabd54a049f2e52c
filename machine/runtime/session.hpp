// The one run of the machine in this process: its observers, the order of the host's program, the report.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "events/observer.hpp"
#include "exec/machine.hpp"

namespace machine::runtime {

// Reads the options and sets up machine and observers, once; every entry calls it first.
void start();

// Options of the machine for loads and launches.
const machine::Options& machine_options();

// The checks of this run, nullptr when there are none. Only a running task may call it directly; runtime state changes
// go through notify().
Observer* observer();

// Queues something for the observers: they are never called while a launch is under way. Called in order, at once when
// nothing runs. State lock held.
void notify(std::function<void(Observer&)> notification);
void notify_all();

std::uint64_t next_operation_id();

// The host's program as a chain of operations: it is cut where it waits for the device, and where it submits work.
// All host threads count as one, since their own synchronisation is not seen. State lock held.
std::uint64_t host_operation();         // what was done so far, as a predecessor of something submitted now
std::uint64_t host_access_operation();  // for something that the host does itself now
void host_joins(const std::vector<std::uint64_t>& ids);
void host_went_on();

// A runtime call that failed; `why` may be empty.
void report_api_error(const char* call, cudaError_t code, const std::string& why);

// The host's program read or wrote device memory directly.
void report_host_dereference(std::uint64_t address);

// One launch that ran to its end, for the proof of work and the error of the context.
void conclude_launch(const std::string& kernel, const LaunchResult& result);

// Adds this program's file to `PID.json.loaded` beside its report: the mark that it runs on the CPU device.
void mark_loaded();

// Ends the report of a process that a signal ends.
void cut_short_report(int signal_number);

// Ends the report, when the process ends, however it does; a second call does nothing. False when there is no report,
// because the options that would say where it goes could not be read.
bool finish_report(const std::string& refusal = {});

}  // namespace machine::runtime
