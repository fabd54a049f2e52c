// Events: recording, waiting, timing.
#include <set>

#include "runtime/api.hpp"
#include "runtime/capture.hpp"
#include "runtime/stream.hpp"

using namespace machine::runtime;

namespace {

std::set<CUevent_st*>& live_events() {
  static auto* const only = new std::set<CUevent_st*>;
  return *only;
}

CUevent_st& event_of(cudaEvent_t event) {
  if (!live_events().contains(event)) fail(cudaErrorInvalidResourceHandle, "the event does not exist (destroyed?)");
  return *event;
}

cudaError_t create(const char* call, cudaEvent_t* event, unsigned flags) {
  return entry(call, [&](Lock&) {
    require(event, cudaErrorInvalidValue, "the event's address is null");
    require(flags <= 7, cudaErrorInvalidValue, "unknown event flags");
    require(!(flags & cudaEventInterprocess) || (flags & cudaEventDisableTiming), cudaErrorInvalidValue,
            "cudaEventInterprocess needs cudaEventDisableTiming");
    *event = new CUevent_st;
    (*event)->flags = flags;
    live_events().insert(*event);
    return cudaSuccess;
  });
}

cudaError_t record(const char* call, cudaEvent_t handle, cudaStream_t stream_handle, Default meaning, unsigned flags) {
  return entry(call, [&](Lock& lock) {
    CUevent_st& event = event_of(handle);
    CUstream_st& stream = stream_of(stream_handle, meaning);
    if (stream.capture) {
      capture_record(stream, event, flags == cudaEventRecordExternal);
      return cudaSuccess;
    }
    require(flags != cudaEventRecordExternal, cudaErrorIllegalState,
            "cudaEventRecordExternal is for streams that are being captured");
    event.recorded = true;
    event.capture.reset();
    event.task = enqueue(stream, MarkerWork{}, lock);
    return cudaSuccess;
  });
}

cudaError_t wait(const char* call, cudaStream_t stream_handle, cudaEvent_t handle, unsigned flags, Default meaning) {
  return entry(call, [&](Lock& lock) {
    CUevent_st& event = event_of(handle);
    CUstream_st& stream = stream_of(stream_handle, meaning);
    require(flags <= cudaEventWaitExternal, cudaErrorInvalidValue, "the flags are no cudaEventWait flags");
    if (stream.capture || event.capture) {
      capture_wait(stream, event, flags == cudaEventWaitExternal);
      return cudaSuccess;
    }
    if (!event.recorded) return cudaSuccess;  // nothing to wait for
    TaskPtr marker = task_of(MarkerWork{}, stream.number);
    marker->after = predecessors(stream);
    marker->after.push_back(event.task);
    stream.last_is_kernel = false;
    stream.last = marker;
    schedule().submit(marker, lock);
    return cudaSuccess;
  });
}

}  // namespace

extern "C" {

cudaError_t cudaEventCreate(cudaEvent_t* event) { return create("cudaEventCreate", event, cudaEventDefault); }
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  return create("cudaEventCreateWithFlags", event, flags);
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  return entry("cudaEventDestroy", [&](Lock&) {
    event_of(event);
    live_events().erase(event);
    delete event;
    return cudaSuccess;
  });
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t s) {
  return record("cudaEventRecord", event, s, Default::legacy, 0);
}
cudaError_t cudaEventRecord_ptsz(cudaEvent_t event, cudaStream_t s) {
  return record("cudaEventRecord", event, s, Default::per_thread, 0);
}
cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t s, unsigned flags) {
  return record("cudaEventRecordWithFlags", event, s, Default::legacy, flags);
}
cudaError_t cudaEventRecordWithFlags_ptsz(cudaEvent_t event, cudaStream_t s, unsigned flags) {
  return record("cudaEventRecordWithFlags", event, s, Default::per_thread, flags);
}
cudaError_t cudaStreamWaitEvent(cudaStream_t s, cudaEvent_t event, unsigned flags) {
  return wait("cudaStreamWaitEvent", s, event, flags, Default::legacy);
}
cudaError_t cudaStreamWaitEvent_ptsz(cudaStream_t s, cudaEvent_t event, unsigned flags) {
  return wait("cudaStreamWaitEvent", s, event, flags, Default::per_thread);
}

cudaError_t cudaEventSynchronize(cudaEvent_t handle) {
  return entry("cudaEventSynchronize", [&](Lock& lock) {
    CUevent_st& event = event_of(handle);
    require(!event.capture, cudaErrorCapturedEvent, "the event was last recorded in a stream capture");
    schedule().wait_for(event.task, lock);
    return cudaSuccess;
  });
}

cudaError_t cudaEventQuery(cudaEvent_t handle) {
  return entry("cudaEventQuery", [&](Lock& lock) {
    CUevent_st& event = event_of(handle);
    require(!event.capture, cudaErrorCapturedEvent, "the event was last recorded in a stream capture");
    TaskPtr task = event.task;
    if (!task || task->done) {
      schedule().wait_for(task, lock);
      return cudaSuccess;
    }
    schedule().nudge(task, lock);
    return cudaErrorNotReady;
  });
}

// Wall time between the moments when the machine got to the two events; at least the clock's resolution.
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start_handle, cudaEvent_t end_handle) {
  return entry("cudaEventElapsedTime", [&](Lock&) {
    CUevent_st& begin = event_of(start_handle);
    CUevent_st& end = event_of(end_handle);
    require(milliseconds, cudaErrorInvalidValue, "the result's address is null");
    require(begin.recorded && end.recorded, cudaErrorInvalidResourceHandle, "an event was never recorded");
    require(!((begin.flags | end.flags) & cudaEventDisableTiming), cudaErrorInvalidResourceHandle,
            "an event was created with cudaEventDisableTiming");
    if (!begin.task->done || !end.task->done) return cudaErrorNotReady;
    *milliseconds = std::chrono::duration<float, std::milli>(end.task->finished - begin.task->finished).count();
    return cudaSuccess;
  });
}
}
