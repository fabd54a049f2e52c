// What a stream can be asked to do, as data. The same description is queued on a stream or kept as a graph node.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "exec/machine.hpp"
#include "runtime/registry.hpp"
#include "runtime/schedule.hpp"

namespace machine::runtime {

struct KernelWork {
  CUkern_st* kernel = nullptr;
  Dim3 grid, block, cluster;
  std::uint32_t dynamic_shared = 0;
  std::vector<std::byte> params;  // laid out as the kernel's .param declarations say
  bool cooperative = false;
  bool programmatic = false;  // ordered after the kernel before it only from griddepcontrol.wait on
};

// `depth` slices of `height` rows of `width` bytes. A row starts `pitch` bytes after the one before it, a slice
// `slice` bytes after the one before it.
struct Extent {
  std::size_t width = 0, height = 1, depth = 1;
};
struct Plane {
  std::uint64_t address = 0;
  std::size_t pitch = 0, slice = 0;
};

struct CopyWork {
  std::string call;
  Plane destination, source;
  Extent extent;
  // Pageable memory is copied aside when the call is made, so that the program may reuse it at once. Pinned memory is
  // read when the copy happens, as the copy engine does.
  std::shared_ptr<std::vector<std::byte>> staged;
};

struct SetWork {
  std::string call;
  Plane destination;
  Extent extent;  // in bytes
  std::uint32_t value = 0;
  unsigned element = 1;  // bytes of the value that repeat
};

struct HostWork {
  std::function<void()> call;
  cudaHostNodeParams params{};
};

struct AllocateWork {
  std::uint64_t address = 0;  // of a graph's memory; 0: the object lives since the call, the operation only dates it
};
struct ReleaseWork {
  std::uint64_t address = 0;
};
struct MarkerWork {};  // orders, does nothing

using Work = std::variant<MarkerWork, KernelWork, CopyWork, SetWork, HostWork, AllocateWork, ReleaseWork>;

// A task that does the work, not yet submitted. `stream` is the number shown in reports.
TaskPtr task_of(const Work& work, std::uint64_t stream);

// A launch checked against the limits of the architecture and the kernel, its arguments packed. Throws ApiError.
KernelWork checked_launch(const void* function, dim3 grid, dim3 block, void** arguments, std::size_t shared,
                          const cudaLaunchAttribute* list = nullptr, unsigned count = 0);

// The right error for a kernel that ended like this.
cudaError_t launch_error(LaunchStatus status);

}  // namespace machine::runtime
