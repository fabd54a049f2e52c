#include "runtime/capture.hpp"

#include <algorithm>
#include <set>

#include "memory/graph_memory.hpp"
#include "runtime/api.hpp"
#include "runtime/graph.hpp"

namespace machine::runtime {
namespace {

struct Captures {
  std::vector<std::shared_ptr<Capture>> active;
  std::set<CUstream_st*> streams;  // that take part in one
  std::uint64_t next_id = 1;
};

Captures& captures() {
  static auto* const only = new Captures;
  return *only;
}

thread_local cudaStreamCaptureMode thread_mode = cudaStreamCaptureModeGlobal;

cudaGraphNodeType type_of(const Work& work) {
  struct Name {
    cudaGraphNodeType operator()(const MarkerWork&) const { return cudaGraphNodeTypeEmpty; }
    cudaGraphNodeType operator()(const KernelWork&) const { return cudaGraphNodeTypeKernel; }
    cudaGraphNodeType operator()(const CopyWork&) const { return cudaGraphNodeTypeMemcpy; }
    cudaGraphNodeType operator()(const SetWork&) const { return cudaGraphNodeTypeMemset; }
    cudaGraphNodeType operator()(const HostWork&) const { return cudaGraphNodeTypeHost; }
    cudaGraphNodeType operator()(const AllocateWork&) const { return cudaGraphNodeTypeMemAlloc; }
    cudaGraphNodeType operator()(const ReleaseWork&) const { return cudaGraphNodeTypeMemFree; }
  };
  return std::visit(Name{}, work);
}

cudaMemcpy3DParms params_of(const CopyWork& work) {
  cudaMemcpy3DParms p{};
  auto pitched = [&](const Plane& plane) {
    return cudaPitchedPtr{reinterpret_cast<void*>(plane.address), plane.pitch, work.extent.width,
                          plane.pitch ? plane.slice / plane.pitch : 1};
  };
  p.dstPtr = pitched(work.destination);
  p.srcPtr = pitched(work.source);
  p.extent = {work.extent.width, work.extent.height, work.extent.depth};
  p.kind = cudaMemcpyDefault;
  return p;
}

CUgraphNode_st& append(CUstream_st& stream, cudaGraphNodeType type, Work work) {
  Capture& capture = *stream.capture;
  require(!capture.invalid, cudaErrorStreamCaptureInvalidated, "the capture was ended by an earlier forbidden call");
  auto& node = add_node(*capture.graph, type, std::move(work), stream.capture_tail.data(), stream.capture_tail.size());
  stream.capture_tail = {&node};
  return node;
}

void leave(CUstream_st& stream) {
  stream.capture.reset();
  stream.capture_tail.clear();
  captures().streams.erase(&stream);
}

// Every captured node must lead to the origin stream, or its order would be lost with the capture.
bool joined(const Capture& capture) {
  std::set<const CUgraphNode_st*> reached;
  std::vector<CUgraphNode_st*> stack = capture.origin->capture_tail;
  while (!stack.empty()) {
    auto* node = stack.back();
    stack.pop_back();
    if (!reached.insert(node).second) continue;
    stack.insert(stack.end(), node->after.begin(), node->after.end());
  }
  for (auto* stream : captures().streams)
    if (stream->capture.get() == &capture)
      for (const auto* node : stream->capture_tail)
        if (!reached.contains(node)) return false;
  return true;
}

}  // namespace

void capture_work(CUstream_st& stream, Work work) {
  if (const auto* release = std::get_if<ReleaseWork>(&work)) {
    const std::uint64_t address = release->address;
    append(stream, cudaGraphNodeTypeMemFree, of_graph(address) ? Work{*release} : Work{MarkerWork{}}).freed = address;
    return;
  }
  const auto type = type_of(work);
  auto& node = append(stream, type, std::move(work));
  if (const auto* copy = std::get_if<CopyWork>(&node.work)) node.copy_params = params_of(*copy);
}

void capture_allocation(CUstream_st& stream, std::uint64_t address, std::size_t bytes) {
  auto& node = append(stream, cudaGraphNodeTypeMemAlloc, AllocateWork{address});
  node.allocation.dptr = reinterpret_cast<void*>(address);
  node.allocation.bytesize = bytes;
}

void capture_record(CUstream_st& stream, CUevent_st& event, bool external) {
  require(!stream.capture->invalid, cudaErrorStreamCaptureInvalidated,
          "the capture was ended by an earlier forbidden call");
  if (external) {
    append(stream, cudaGraphNodeTypeEventRecord, MarkerWork{}).event = &event;
    return;
  }
  event.recorded = true;
  event.capture = stream.capture;
  event.capture_tail = stream.capture_tail;
}

void capture_wait(CUstream_st& stream, CUevent_st& event, bool external) {
  if (external && stream.capture) {
    append(stream, cudaGraphNodeTypeWaitEvent, MarkerWork{}).event = &event;
    return;
  }
  if (!event.capture) {
    invalidate_capture(*stream.capture);
    fail(cudaErrorStreamCaptureIsolation, "a captured stream may not wait for an event recorded outside the capture");
  }
  if (stream.capture && stream.capture != event.capture) {
    invalidate_capture(*stream.capture);
    invalidate_capture(*event.capture);
    fail(cudaErrorStreamCaptureMerge, "the event belongs to another capture");
  }
  require(!stream.legacy, cudaErrorStreamCaptureUnsupported, "the legacy stream cannot be captured");
  stream.capture = event.capture;
  captures().streams.insert(&stream);
  for (auto* node : event.capture_tail)
    if (std::find(stream.capture_tail.begin(), stream.capture_tail.end(), node) == stream.capture_tail.end())
      stream.capture_tail.push_back(node);
}

void invalidate_capture(Capture& capture) { capture.invalid = true; }

void forbid_legacy_during_capture() {
  for (auto* stream : captures().streams) {
    if (!stream->blocking() || stream->capture->mode == cudaStreamCaptureModeRelaxed) continue;
    invalidate_capture(*stream->capture);
    fail(cudaErrorStreamCaptureImplicit,
         "work on the legacy default stream would wait for a stream that is being captured");
  }
}

void require_no_global_capture(const char* call) {
  if (thread_mode == cudaStreamCaptureModeRelaxed) return;
  for (const auto& capture : captures().active) {
    const bool own = capture->thread == std::this_thread::get_id();
    const bool forbids =
        (capture->mode == cudaStreamCaptureModeGlobal && (own || thread_mode == cudaStreamCaptureModeGlobal)) ||
        (capture->mode == cudaStreamCaptureModeThreadLocal && own);
    if (!forbids) continue;
    invalidate_capture(*capture);
    fail(cudaErrorStreamCaptureUnsupported, std::string(call) + " may not be called while a stream is being captured");
  }
}

}  // namespace machine::runtime

using namespace machine::runtime;

namespace {

cudaError_t begin(const char* call, cudaStream_t handle, Default meaning, cudaStreamCaptureMode mode, cudaGraph_t into,
                  const cudaGraphNode_t* after, size_t count) {
  return entry(call, [&](Lock&) {
    CUstream_st& stream = stream_of(handle, meaning);
    require(!stream.legacy, cudaErrorStreamCaptureUnsupported, "the legacy default stream cannot be captured");
    require(!stream.capture, cudaErrorIllegalState, "the stream is being captured already");
    require(mode >= cudaStreamCaptureModeGlobal && mode <= cudaStreamCaptureModeRelaxed, cudaErrorInvalidValue,
            "unknown mode");
    auto capture = std::make_shared<Capture>();
    capture->id = captures().next_id++;
    capture->graph = into ? &graph_of(into) : create_graph();
    capture->owns_graph = into == nullptr;
    capture->origin = &stream;
    capture->mode = mode;
    capture->thread = std::this_thread::get_id();
    stream.capture = capture;
    stream.capture_tail.assign(after, after + count);
    captures().active.push_back(capture);
    captures().streams.insert(&stream);
    return cudaSuccess;
  });
}

cudaError_t end(cudaStream_t handle, cudaGraph_t* graph, Default meaning) {
  return entry("cudaStreamEndCapture", [&](Lock&) {
    CUstream_st& stream = stream_of(handle, meaning);
    require(graph, cudaErrorInvalidValue, "the graph's address is null");
    require(stream.capture != nullptr, cudaErrorIllegalState, "the stream is not being captured");
    auto capture = stream.capture;
    require(capture->origin == &stream, cudaErrorStreamCaptureUnmatched, "the capture began on another stream");
    require(capture->mode == cudaStreamCaptureModeRelaxed || capture->thread == std::this_thread::get_id(),
            cudaErrorStreamCaptureWrongThread, "the capture began on another thread");
    const bool all_joined = joined(*capture);
    for (auto* other : std::set<CUstream_st*>(captures().streams))
      if (other->capture == capture) leave(*other);
    std::erase(captures().active, capture);
    *graph = nullptr;
    if (capture->invalid || !all_joined) {
      if (capture->owns_graph) destroy_graph(capture->graph);
      fail(capture->invalid ? cudaErrorStreamCaptureInvalidated : cudaErrorStreamCaptureUnjoined,
           capture->invalid ? "a forbidden call was made during the capture"
                            : "a stream that joined the capture was not joined back into the first one");
    }
    *graph = capture->graph;
    return cudaSuccess;
  });
}

cudaStreamCaptureStatus status_of(const CUstream_st& stream) {
  if (!stream.capture) return cudaStreamCaptureStatusNone;
  return stream.capture->invalid ? cudaStreamCaptureStatusInvalidated : cudaStreamCaptureStatusActive;
}

cudaError_t is_capturing(cudaStream_t stream, cudaStreamCaptureStatus* status, Default meaning) {
  return entry("cudaStreamIsCapturing", [&](Lock&) {
    require(status, cudaErrorInvalidValue, "the result's address is null");
    *status = status_of(stream_of(stream, meaning));
    return cudaSuccess;
  });
}

cudaError_t capture_info(cudaStream_t handle, cudaStreamCaptureStatus* status, unsigned long long* id,
                         cudaGraph_t* graph, const cudaGraphNode_t** tail, const cudaGraphEdgeData** edges,
                         size_t* count, Default meaning) {
  return entry("cudaStreamGetCaptureInfo", [&](Lock&) {
    CUstream_st& stream = stream_of(handle, meaning);
    require(status, cudaErrorInvalidValue, "the status's address is null");
    *status = status_of(stream);
    if (*status == cudaStreamCaptureStatusNone) return cudaSuccess;
    if (id) *id = stream.capture->id;
    if (graph) *graph = stream.capture->graph;
    if (tail) *tail = stream.capture_tail.data();
    if (edges) *edges = nullptr;
    if (count) *count = stream.capture_tail.size();
    return cudaSuccess;
  });
}

cudaError_t update_tail(cudaStream_t handle, cudaGraphNode_t* nodes, size_t count, unsigned flags, Default meaning) {
  return entry("cudaStreamUpdateCaptureDependencies", [&](Lock&) {
    CUstream_st& stream = stream_of(handle, meaning);
    require(stream.capture != nullptr, cudaErrorIllegalState, "the stream is not being captured");
    if (flags == cudaStreamSetCaptureDependencies) stream.capture_tail.clear();
    for (size_t i = 0; i < count; ++i) stream.capture_tail.push_back(&node_of(nodes[i]));
    return cudaSuccess;
  });
}

}  // namespace

extern "C" {

cudaError_t cudaStreamBeginCapture(cudaStream_t s, cudaStreamCaptureMode mode) {
  return begin("cudaStreamBeginCapture", s, Default::legacy, mode, nullptr, nullptr, 0);
}
cudaError_t cudaStreamBeginCapture_ptsz(cudaStream_t s, cudaStreamCaptureMode mode) {
  return begin("cudaStreamBeginCapture", s, Default::per_thread, mode, nullptr, nullptr, 0);
}
cudaError_t cudaStreamBeginCaptureToGraph(cudaStream_t s, cudaGraph_t graph, const cudaGraphNode_t* after,
                                          const cudaGraphEdgeData*, size_t n, cudaStreamCaptureMode mode) {
  return begin("cudaStreamBeginCaptureToGraph", s, Default::legacy, mode, graph, after, n);
}
cudaError_t cudaStreamBeginCaptureToGraph_ptsz(cudaStream_t s, cudaGraph_t graph, const cudaGraphNode_t* after,
                                               const cudaGraphEdgeData*, size_t n, cudaStreamCaptureMode mode) {
  return begin("cudaStreamBeginCaptureToGraph", s, Default::per_thread, mode, graph, after, n);
}
cudaError_t cudaStreamEndCapture(cudaStream_t s, cudaGraph_t* graph) { return end(s, graph, Default::legacy); }
cudaError_t cudaStreamEndCapture_ptsz(cudaStream_t s, cudaGraph_t* graph) { return end(s, graph, Default::per_thread); }
cudaError_t cudaStreamIsCapturing(cudaStream_t s, cudaStreamCaptureStatus* status) {
  return is_capturing(s, status, Default::legacy);
}
cudaError_t cudaStreamIsCapturing_ptsz(cudaStream_t s, cudaStreamCaptureStatus* status) {
  return is_capturing(s, status, Default::per_thread);
}
cudaError_t cudaStreamGetCaptureInfo(cudaStream_t s, cudaStreamCaptureStatus* status, unsigned long long* id,
                                     cudaGraph_t* graph, const cudaGraphNode_t** tail, const cudaGraphEdgeData** edges,
                                     size_t* count) {
  return capture_info(s, status, id, graph, tail, edges, count, Default::legacy);
}
cudaError_t cudaStreamGetCaptureInfo_ptsz(cudaStream_t s, cudaStreamCaptureStatus* status, unsigned long long* id,
                                          cudaGraph_t* graph, const cudaGraphNode_t** tail,
                                          const cudaGraphEdgeData** edges, size_t* count) {
  return capture_info(s, status, id, graph, tail, edges, count, Default::per_thread);
}
cudaError_t cudaStreamUpdateCaptureDependencies(cudaStream_t s, cudaGraphNode_t* nodes, const cudaGraphEdgeData*,
                                                size_t n, unsigned flags) {
  return update_tail(s, nodes, n, flags, Default::legacy);
}
cudaError_t cudaStreamUpdateCaptureDependencies_ptsz(cudaStream_t s, cudaGraphNode_t* nodes, const cudaGraphEdgeData*,
                                                     size_t n, unsigned flags) {
  return update_tail(s, nodes, n, flags, Default::per_thread);
}

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  return entry("cudaThreadExchangeStreamCaptureMode", [&](Lock&) {
    require(mode, cudaErrorInvalidValue, "the mode's address is null");
    std::swap(*mode, thread_mode);
    return cudaSuccess;
  });
}
}
