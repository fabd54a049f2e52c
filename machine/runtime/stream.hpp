// Streams and events: who is ordered after whom.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/schedule.hpp"
#include "runtime/work.hpp"

namespace machine::runtime {

struct Capture;

// Which default stream a null handle means: entries with the suffix _ptsz or _ptds mean the thread's own.
enum class Default { legacy, per_thread };

// The stream behind a handle. Throws ApiError(cudaErrorInvalidResourceHandle) for a dead one.
CUstream_st& stream_of(cudaStream_t handle, Default meaning);

// Adds the work behind everything that the stream must follow, or to the graph that the stream is captured into.
// Returns the task, nullptr when captured.
TaskPtr enqueue(CUstream_st& stream, Work work, Lock& lock);

// Throws when the stream is capturing: `call` may not be captured.
void require_no_capture(const CUstream_st& stream, const char* call);
// Throws when any capture in global mode is under way: synchronous calls may not happen then.
void require_no_global_capture(const char* call);

// The tasks that work submitted now to the stream would have to follow.
std::vector<TaskPtr> predecessors(const CUstream_st& stream);

}  // namespace machine::runtime

struct CUstream_st {
  std::uint64_t number = 0;  // shown in reports: 0 is the legacy default stream
  unsigned flags = cudaStreamDefault;
  int priority = 0;
  bool legacy = false;
  machine::runtime::TaskPtr last;  // the newest task
  std::vector<machine::runtime::TaskPtr>
      last_kernel_after;  // what the newest kernel followed, for programmatic launches
  bool last_is_kernel = false;
  std::shared_ptr<machine::runtime::Capture> capture;
  std::vector<cudaGraphNode_t> capture_tail;  // nodes that the next captured one depends on
  cudaStreamAttrValue attributes[16] = {};

  bool blocking() const { return !(flags & cudaStreamNonBlocking); }
};

struct CUevent_st {
  unsigned flags = cudaEventDefault;
  bool recorded = false;
  machine::runtime::TaskPtr task;                      // newest record
  std::shared_ptr<machine::runtime::Capture> capture;  // recorded inside a capture
  std::vector<cudaGraphNode_t> capture_tail;
};
