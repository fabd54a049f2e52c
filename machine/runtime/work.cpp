// What each kind of work does when its time comes. Runs without the state lock; nothing else runs meanwhile.
#include "runtime/work.hpp"

#include <chrono>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <exception>
#include <new>
#include <utility>

#include "memory/address_space.hpp"
#include "memory/graph_memory.hpp"
#include "observers/checks.hpp"
#include "runtime/api.hpp"
#include "runtime/background.hpp"
#include "runtime/device_limits.hpp"
#include "runtime/exit.hpp"
#include "runtime/host_guard.hpp"
#include "runtime/host_seal.hpp"
#include "runtime/host_watch.hpp"
#include "runtime/options.hpp"
#include "runtime/session.hpp"

namespace machine::runtime {
namespace {

bool known_to_machine(std::uint64_t address) { return AddressSpace::instance().find(address) != nullptr; }

std::byte* bytes_at(std::uint64_t address) { return reinterpret_cast<std::byte*>(address); }

// Tells one side of a copy or set, slice by slice. False: a check vetoed it.
bool may_touch(const Operation& operation, AccessKind kind, const Plane& plane, const Extent& extent) {
  Observer* checks = observer();
  if (!checks || !known_to_machine(plane.address)) return true;
  bool may = true;
  const bool rows_touch = plane.pitch == extent.width || extent.height == 1;
  for (std::size_t z = 0; z < extent.depth; ++z) {
    const std::uint64_t start = plane.address + z * plane.slice;
    may &= rows_touch ? checks->host_access(operation.id, kind, start, extent.width * extent.height)
                      : checks->host_access(operation.id, kind, start, extent.width, plane.pitch, extent.height);
  }
  return may;
}

void copy(const CopyWork& work, const Operation& operation) {
  const Extent& extent = work.extent;
  if (extent.width == 0 || extent.height == 0 || extent.depth == 0) return;
  bool may = work.staged || may_touch(operation, AccessKind::load, work.source, extent);
  may &= may_touch(operation, AccessKind::store, work.destination, extent);
  if (!may) return;
  const std::byte* source = work.staged ? work.staged->data() : bytes_at(work.source.address);
  const std::size_t source_pitch = work.staged ? extent.width : work.source.pitch;
  const std::size_t source_slice = work.staged ? extent.width * extent.height : work.source.slice;
  for (std::size_t z = 0; z < extent.depth; ++z)
    for (std::size_t y = 0; y < extent.height; ++y)
      std::memmove(bytes_at(work.destination.address + z * work.destination.slice + y * work.destination.pitch),
                   source + z * source_slice + y * source_pitch, extent.width);
}

void fill_row(std::byte* row, std::size_t bytes, std::uint32_t value, unsigned element) {
  if (element == 1) {
    std::memset(row, static_cast<int>(value & 0xff), bytes);
    return;
  }
  for (std::size_t at = 0; at + element <= bytes; at += element) std::memcpy(row + at, &value, element);
}

void set(const SetWork& work, const Operation& operation) {
  if (work.extent.width == 0 || !may_touch(operation, AccessKind::store, work.destination, work.extent)) return;
  for (std::size_t z = 0; z < work.extent.depth; ++z)
    for (std::size_t y = 0; y < work.extent.height; ++y)
      fill_row(bytes_at(work.destination.address + z * work.destination.slice + y * work.destination.pitch),
               work.extent.width, work.value, work.element);
}

// One launch, for measuring the machine: seconds by the wall and of the processor. Parsing is over when it begins.
struct Stopwatch {
  std::chrono::steady_clock::time_point wall = std::chrono::steady_clock::now();
  std::clock_t processor = std::clock();

  double wall_seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - wall).count(); }
  double processor_seconds() const { return static_cast<double>(std::clock() - processor) / CLOCKS_PER_SEC; }
  // Takes out what another launch spent inside this one.
  void exclude(const Stopwatch& other) {
    wall += std::chrono::steady_clock::now() - other.wall;
    processor += std::clock() - other.processor;
  }
};

// One line: mangled name, wall seconds, processor seconds, thread instructions, warp instructions.
void note_timing(const std::string& kernel, const Stopwatch& watch, const Counters& counters) {
  const double wall = watch.wall_seconds(), processor = watch.processor_seconds();
  static std::FILE* const file = std::fopen(options().timing.c_str(), "a");
  if (!file) return;
  std::fprintf(file, "%s %.9f %.9f %llu %llu\n", kernel.c_str(), wall, processor,
               static_cast<unsigned long long>(counters.thread_instructions),
               static_cast<unsigned long long>(counters.warp_instructions));
  std::fflush(file);
}

void launch_kernel(const KernelWork& work, const Task& task) {
  const Operation& operation = task.operation;
  LaunchRequest request;
  request.kernel = &work.kernel->kernel();
  request.grid = work.grid;
  request.block = work.block;
  request.cluster = work.cluster;
  request.dynamic_shared = work.dynamic_shared;
  request.params = work.params;
  request.cooperative = work.cooperative;
  request.operation = operation.id;
  request.host = host_state;
  request.release_host = [calls = runtime_calls()]() mutable {
    const bool calls_on = runtime_calls() != std::exchange(calls, runtime_calls());
    return schedule().release_queries() || calls_on;
  };
  request.heap_bytes = device_limit(cudaLimitMallocHeapSize);
  request.stack_bytes = static_cast<std::uint32_t>(device_limit(cudaLimitStackSize));
  Stopwatch watch;
  if (task.overtakes)
    request.dependency_wait = [&] {
      const Stopwatch inner;
      schedule().run_inside(task.released_early);
      watch.exclude(inner);
    };
  LaunchResult result;
  try {
    request.kernel->prepare();
    watch = {};
    result = launch(request, machine_options(), observer());
  } catch (const PtxError& error) {
    refuse(error.what());
  }
  if (!options().timing.empty()) note_timing(work.kernel->name, watch, result.counters);
  if (!result.printed.empty()) {
    std::fwrite(result.printed.data(), 1, result.printed.size(), stdout);
    std::fflush(stdout);
  }
  if (result.status == LaunchStatus::invalid_ptx || result.status == LaunchStatus::unsupported) refuse(result.message);
  conclude_launch(work.kernel->name, result);
  if (result.status != LaunchStatus::ok) set_context_error(launch_error(result.status));
}

void begin_life_of(const AllocateWork& work, const Operation& operation) {
  const Object* object = work.address != 0 ? AddressSpace::instance().find(work.address) : nullptr;
  if (!object) return;
  begin_life(*object, operation.id);
  if (observer()) observer()->allocated(*object);
}

void release(const ReleaseWork& work, const Operation& operation) {
  if (of_graph(work.address)) {
    const Object* object = AddressSpace::instance().find(work.address);
    if (!end_life(*object, operation.id))
      report_api_error(operation.name.c_str(), cudaErrorInvalidValue,
                       "the graph that owns the memory has freed it before (double free)");
    else if (observer()) observer()->released(*object);
    return;
  }
  const Object* object = AddressSpace::instance().release(work.address, operation.id);
  if (!object) return;
  unguard(*object);
  if (observer()) observer()->released(*object);
}

// What it touches of memory that is shared with the device counts as its doing.
void call_host(const HostWork& work, const Operation& operation) {
  work.call();
  Observer* checks = observer();
  if (!checks) return;
  Lock lock(state_mutex());
  report_sealed_accesses(operation.id, *checks);
  look_at_host_memory(operation.id, *checks);
}

struct Perform {
  const Task& task;
  const Operation& operation = task.operation;
  void operator()(const MarkerWork&) const {}
  void operator()(const KernelWork& work) const { launch_kernel(work, task); }
  void operator()(const CopyWork& work) const { copy(work, operation); }
  void operator()(const SetWork& work) const { set(work, operation); }
  void operator()(const HostWork& work) const { call_host(work, operation); }
  void operator()(const AllocateWork& work) const { begin_life_of(work, operation); }
  void operator()(const ReleaseWork& work) const { release(work, operation); }
};

struct Describe {
  Operation& told;
  void set(OperationKind kind, std::string name) const {
    told.kind = kind;
    told.name = std::move(name);
  }
  void operator()(const MarkerWork&) const {}
  void operator()(const KernelWork& work) const { set(OperationKind::kernel, work.kernel->name); }
  void operator()(const CopyWork& work) const { set(OperationKind::copy, work.call); }
  void operator()(const SetWork& work) const { set(OperationKind::set, work.call); }
  void operator()(const HostWork&) const { set(OperationKind::host_function, "host function"); }
  void operator()(const AllocateWork&) const { set(OperationKind::allocate, "cudaMallocAsync"); }
  void operator()(const ReleaseWork&) const { set(OperationKind::release, "cudaFreeAsync"); }
};

}  // namespace

TaskPtr task_of(const Work& work, std::uint64_t stream) {
  auto task = std::make_shared<Task>();
  task->operation.stream = stream;
  std::visit(Describe{task->operation}, work);
  task->is_host_function = std::holds_alternative<HostWork>(work);
  if (std::holds_alternative<MarkerWork>(work)) return task;
  task->body = [work](Task& self) {
    // After a sticky error nothing runs any more, but for host functions, which a program may wait for.
    if (context_error() && !self.is_host_function) return;
    Observer* checks = observer();
    try {
      if (checks && self.released_early) static_cast<machine::checks::Checks&>(*checks).begins_early(self.operation.id);
      if (checks) checks->operation_begin(self.operation);
      std::visit(Perform{self}, work);
      if (checks) checks->operation_end(self.operation);
    } catch (const std::bad_alloc&) {
      refuse("this computer ran out of memory while it did " + self.operation.name);
    } catch (const std::exception& error) {
      refuse("the CPU device failed while it did " + self.operation.name + ": " + error.what());
    }
  };
  return task;
}

cudaError_t launch_error(LaunchStatus status) {
  switch (status) {
    case LaunchStatus::ok: return cudaSuccess;
    case LaunchStatus::illegal_address: return cudaErrorIllegalAddress;
    case LaunchStatus::misaligned_address: return cudaErrorMisalignedAddress;
    case LaunchStatus::trap: return cudaErrorLaunchFailure;
    case LaunchStatus::assertion: return cudaErrorAssert;
    case LaunchStatus::deadlock: return cudaErrorLaunchTimeout;
    case LaunchStatus::stalled: return cudaErrorLaunchTimeout;
    case LaunchStatus::stack_overflow: return cudaErrorHardwareStackError;
    case LaunchStatus::invalid_call: return cudaErrorInvalidPc;
    case LaunchStatus::invalid_ptx: return cudaErrorInvalidPtx;
    case LaunchStatus::unsupported: return cudaErrorNotSupported;
  }
  return cudaErrorUnknown;
}

}  // namespace machine::runtime
