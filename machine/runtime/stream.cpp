// Streams: creation, order, waiting, queries, host functions.
#include "runtime/stream.hpp"

#include <algorithm>
#include <set>

#include "runtime/api.hpp"
#include "runtime/capture.hpp"
#include "runtime/host_seal.hpp"
#include "runtime/session.hpp"

namespace machine::runtime {
namespace {

struct Streams {
  std::set<CUstream_st*> live;
  std::vector<TaskPtr> orphans;  // last tasks of destroyed blocking streams, which the legacy stream still follows
  CUstream_st legacy;
  std::uint64_t next_number = 1;
};

Streams& streams() {
  static Streams* const only = [] {
    auto* all = new Streams;
    all->legacy.legacy = true;
    return all;
  }();
  return *only;
}

CUstream_st* create(unsigned flags, int priority) {
  auto* stream = new CUstream_st;
  stream->number = streams().next_number++;
  stream->flags = flags;
  stream->priority = priority;
  streams().live.insert(stream);
  return stream;
}

CUstream_st& thread_stream() {
  thread_local CUstream_st* stream = create(cudaStreamDefault, 0);
  return *stream;
}

// A programmatic launch overlaps the kernel right before it; work of another stream that it must follow as well and
// that came in between orders it plainly.
bool nothing_between(const CUstream_st& stream, const std::vector<TaskPtr>& after) {
  return std::all_of(after.begin(), after.end(), [&](const TaskPtr& task) {
    return task == stream.last || task->sequence < stream.last->sequence;
  });
}

}  // namespace

CUstream_st& stream_of(cudaStream_t handle, Default meaning) {
  if (handle == nullptr) return meaning == Default::legacy ? streams().legacy : thread_stream();
  if (handle == cudaStreamLegacy) return streams().legacy;
  if (handle == cudaStreamPerThread) return thread_stream();
  if (!streams().live.contains(handle)) fail(cudaErrorInvalidResourceHandle, "the stream does not exist (destroyed?)");
  return *handle;
}

std::vector<TaskPtr> predecessors(const CUstream_st& stream) {
  std::vector<TaskPtr> after{stream.last};
  if (stream.legacy) {
    for (const auto* other : streams().live)
      if (other->blocking()) after.push_back(other->last);
    std::erase_if(streams().orphans, [](const TaskPtr& task) { return task->done; });
    after.insert(after.end(), streams().orphans.begin(), streams().orphans.end());
  } else if (stream.blocking()) {
    after.push_back(streams().legacy.last);
  }
  // The set of streams is ordered by address; tasks are reported in order of submission.
  std::erase(after, nullptr);
  std::sort(after.begin(), after.end(), [](const TaskPtr& a, const TaskPtr& b) { return a->order < b->order; });
  return after;
}

TaskPtr enqueue(CUstream_st& stream, Work work, Lock& lock) {
  if (stream.capture) {
    capture_work(stream, std::move(work));
    return nullptr;
  }
  if (stream.legacy) forbid_legacy_during_capture();
  const auto* kernel = std::get_if<KernelWork>(&work);
  TaskPtr task = task_of(work, stream.number);
  task->after = predecessors(stream);
  if (kernel && kernel->programmatic && stream.last_is_kernel && nothing_between(stream, task->after))
    task->released_early = stream.last;
  stream.last_is_kernel = kernel != nullptr;
  stream.last = task;
  schedule().submit(task, lock);
  if (!task->done) seal_destination(work, task);
  return task;
}

void require_no_capture(const CUstream_st& stream, const char* call) {
  if (!stream.capture) return;
  invalidate_capture(*stream.capture);
  fail(cudaErrorStreamCaptureUnsupported, std::string(call) + " may not be called on a stream that is being captured");
}

}  // namespace machine::runtime

using namespace machine::runtime;

namespace {

cudaError_t create_stream(const char* call, cudaStream_t* stream, unsigned flags, int priority) {
  return entry(call, [&](Lock&) {
    require(stream, cudaErrorInvalidValue, "the stream's address is null");
    require(flags <= cudaStreamNonBlocking, cudaErrorInvalidValue, "unknown stream flags");
    *stream = create(flags, std::clamp(priority, -5, 0));
    return cudaSuccess;
  });
}

cudaError_t synchronize(const char* call, cudaStream_t handle, Default meaning) {
  return entry(call, [&](Lock& lock) {
    CUstream_st& stream = stream_of(handle, meaning);
    require_no_capture(stream, call);
    if (stream.legacy) {
      require_no_global_capture(call);
      schedule().wait_for(enqueue(stream, MarkerWork{}, lock), lock);
    } else {
      schedule().wait_for(stream.last, lock);
    }
    return cudaSuccess;
  });
}

cudaError_t query(const char* call, cudaStream_t handle, Default meaning) {
  return entry(call, [&](Lock& lock) {
    CUstream_st& stream = stream_of(handle, meaning);
    require_no_capture(stream, call);
    TaskPtr last = stream.last;
    if (!last || last->done) {
      schedule().wait_for(last, lock);
      return cudaSuccess;
    }
    schedule().nudge(last, lock);
    return cudaErrorNotReady;
  });
}

cudaError_t launch_host(const char* call, cudaStream_t handle, Default meaning, HostWork work) {
  return entry(call, [&](Lock& lock) {
    enqueue(stream_of(handle, meaning), std::move(work), lock);
    return cudaSuccess;
  });
}

HostWork host_function(cudaHostFn_t function, void* data) {
  return {[function, data] { function(data); }, {function, data}};
}

cudaError_t add_callback(const char* call, cudaStream_t stream, Default meaning, cudaStreamCallback_t callback,
                         void* data) {
  return launch_host(call, stream, meaning, {[=] { callback(stream, context_error(), data); }, {}});
}

cudaError_t copy_attributes(const char* call, cudaStream_t to, cudaStream_t from, Default meaning) {
  return entry(call, [&](Lock&) {
    CUstream_st& source = stream_of(from, meaning);
    std::copy(std::begin(source.attributes), std::end(source.attributes), stream_of(to, meaning).attributes);
    return cudaSuccess;
  });
}

constexpr int kAttributes = 16;

cudaError_t get_attribute(const char* call, cudaStream_t stream, Default meaning, int id, cudaStreamAttrValue* value) {
  return entry(call, [&](Lock&) {
    require(value && id >= 0 && id < kAttributes, cudaErrorInvalidValue, "unknown stream attribute");
    *value = stream_of(stream, meaning).attributes[id];
    if (id == cudaLaunchAttributePriority) value->priority = stream_of(stream, meaning).priority;
    return cudaSuccess;
  });
}

cudaError_t set_attribute(const char* call, cudaStream_t stream, Default meaning, int id,
                          const cudaStreamAttrValue* value) {
  return entry(call, [&](Lock&) {
    require(value && id >= 0 && id < kAttributes, cudaErrorInvalidValue, "unknown stream attribute");
    stream_of(stream, meaning).attributes[id] = *value;
    if (id == cudaLaunchAttributePriority) stream_of(stream, meaning).priority = value->priority;
    return cudaSuccess;
  });
}

template <class T, class Get>
cudaError_t stream_property(const char* call, cudaStream_t stream, Default meaning, T* result, Get get) {
  return entry(call, [&](Lock&) {
    require(result, cudaErrorInvalidValue, "the result's address is null");
    *result = static_cast<T>(get(stream_of(stream, meaning)));
    return cudaSuccess;
  });
}

int priority_of(const CUstream_st& stream) { return stream.priority; }
unsigned flags_of(const CUstream_st& stream) { return stream.flags; }
std::uint64_t number_of(const CUstream_st& stream) { return stream.number; }
int device_of(const CUstream_st&) { return 0; }

}  // namespace

extern "C" {

cudaError_t cudaStreamCreate(cudaStream_t* stream) {
  return create_stream("cudaStreamCreate", stream, cudaStreamDefault, 0);
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  return create_stream("cudaStreamCreateWithFlags", stream, flags, 0);
}
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int priority) {
  return create_stream("cudaStreamCreateWithPriority", stream, flags, priority);
}

cudaError_t cudaStreamDestroy(cudaStream_t handle) {
  return entry("cudaStreamDestroy", [&](Lock&) {
    require(handle && handle != cudaStreamLegacy && handle != cudaStreamPerThread, cudaErrorInvalidResourceHandle,
            "a default stream cannot be destroyed");
    CUstream_st& stream = stream_of(handle, Default::legacy);
    if (stream.capture) invalidate_capture(*stream.capture);
    if (stream.last && !stream.last->done && stream.blocking()) streams().orphans.push_back(stream.last);
    streams().live.erase(handle);
    delete handle;
    return cudaSuccess;
  });
}

cudaError_t cudaStreamSynchronize(cudaStream_t s) { return synchronize("cudaStreamSynchronize", s, Default::legacy); }
cudaError_t cudaStreamSynchronize_ptsz(cudaStream_t s) {
  return synchronize("cudaStreamSynchronize", s, Default::per_thread);
}
cudaError_t cudaStreamQuery(cudaStream_t s) { return query("cudaStreamQuery", s, Default::legacy); }
cudaError_t cudaStreamQuery_ptsz(cudaStream_t s) { return query("cudaStreamQuery", s, Default::per_thread); }

cudaError_t cudaDeviceSynchronize() {
  return entry("cudaDeviceSynchronize", [&](Lock& lock) {
    require_no_global_capture("cudaDeviceSynchronize");
    schedule().wait_for_all(lock);
    return cudaSuccess;
  });
}

cudaError_t cudaLaunchHostFunc(cudaStream_t s, cudaHostFn_t function, void* data) {
  return launch_host("cudaLaunchHostFunc", s, Default::legacy, host_function(function, data));
}
cudaError_t cudaLaunchHostFunc_ptsz(cudaStream_t s, cudaHostFn_t function, void* data) {
  return launch_host("cudaLaunchHostFunc", s, Default::per_thread, host_function(function, data));
}
// The last argument says how the hardware queue waits for the function; here there is one only.
cudaError_t cudaLaunchHostFunc_v2(cudaStream_t s, cudaHostFn_t function, void* data, unsigned) {
  return launch_host("cudaLaunchHostFunc_v2", s, Default::legacy, host_function(function, data));
}
cudaError_t cudaLaunchHostFunc_v2_ptsz(cudaStream_t s, cudaHostFn_t function, void* data, unsigned) {
  return launch_host("cudaLaunchHostFunc_v2", s, Default::per_thread, host_function(function, data));
}
cudaError_t cudaStreamAddCallback(cudaStream_t s, cudaStreamCallback_t callback, void* data, unsigned) {
  return add_callback("cudaStreamAddCallback", s, Default::legacy, callback, data);
}
cudaError_t cudaStreamAddCallback_ptsz(cudaStream_t s, cudaStreamCallback_t callback, void* data, unsigned) {
  return add_callback("cudaStreamAddCallback", s, Default::per_thread, callback, data);
}

cudaError_t cudaStreamCopyAttributes(cudaStream_t to, cudaStream_t from) {
  return copy_attributes("cudaStreamCopyAttributes", to, from, Default::legacy);
}
cudaError_t cudaStreamCopyAttributes_ptsz(cudaStream_t to, cudaStream_t from) {
  return copy_attributes("cudaStreamCopyAttributes", to, from, Default::per_thread);
}
cudaError_t cudaStreamGetAttribute(cudaStream_t s, cudaStreamAttrID id, cudaStreamAttrValue* value) {
  return get_attribute("cudaStreamGetAttribute", s, Default::legacy, id, value);
}
cudaError_t cudaStreamGetAttribute_ptsz(cudaStream_t s, cudaStreamAttrID id, cudaStreamAttrValue* value) {
  return get_attribute("cudaStreamGetAttribute", s, Default::per_thread, id, value);
}
cudaError_t cudaStreamSetAttribute(cudaStream_t s, cudaStreamAttrID id, const cudaStreamAttrValue* value) {
  return set_attribute("cudaStreamSetAttribute", s, Default::legacy, id, value);
}
cudaError_t cudaStreamSetAttribute_ptsz(cudaStream_t s, cudaStreamAttrID id, const cudaStreamAttrValue* value) {
  return set_attribute("cudaStreamSetAttribute", s, Default::per_thread, id, value);
}

cudaError_t cudaStreamGetPriority(cudaStream_t s, int* priority) {
  return stream_property("cudaStreamGetPriority", s, Default::legacy, priority, priority_of);
}
cudaError_t cudaStreamGetPriority_ptsz(cudaStream_t s, int* priority) {
  return stream_property("cudaStreamGetPriority", s, Default::per_thread, priority, priority_of);
}
cudaError_t cudaStreamGetFlags(cudaStream_t s, unsigned* flags) {
  return stream_property("cudaStreamGetFlags", s, Default::legacy, flags, flags_of);
}
cudaError_t cudaStreamGetFlags_ptsz(cudaStream_t s, unsigned* flags) {
  return stream_property("cudaStreamGetFlags", s, Default::per_thread, flags, flags_of);
}
cudaError_t cudaStreamGetId(cudaStream_t s, unsigned long long* id) {
  return stream_property("cudaStreamGetId", s, Default::legacy, id, number_of);
}
cudaError_t cudaStreamGetId_ptsz(cudaStream_t s, unsigned long long* id) {
  return stream_property("cudaStreamGetId", s, Default::per_thread, id, number_of);
}
cudaError_t cudaStreamGetDevice(cudaStream_t s, int* device) {
  return stream_property("cudaStreamGetDevice", s, Default::legacy, device, device_of);
}
cudaError_t cudaStreamGetDevice_ptsz(cudaStream_t s, int* device) {
  return stream_property("cudaStreamGetDevice", s, Default::per_thread, device, device_of);
}

// Managed memory belongs to every stream here, which is what the default attachment says.
cudaError_t cudaStreamAttachMemAsync(cudaStream_t s, void*, size_t, unsigned) {
  return entry("cudaStreamAttachMemAsync", [&](Lock&) { return (void)stream_of(s, Default::legacy), cudaSuccess; });
}
cudaError_t cudaStreamAttachMemAsync_ptsz(cudaStream_t s, void*, size_t, unsigned) {
  return entry("cudaStreamAttachMemAsync", [&](Lock&) { return (void)stream_of(s, Default::per_thread), cudaSuccess; });
}
}
