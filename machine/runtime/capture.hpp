// Stream capture: work goes into a graph instead of onto the stream.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <thread>

#include "runtime/stream.hpp"
#include "runtime/work.hpp"

namespace machine::runtime {

struct Capture {
  std::uint64_t id = 0;
  CUgraph_st* graph = nullptr;
  bool owns_graph = true;  // false: captured into a graph that the program made
  CUstream_st* origin = nullptr;
  cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
  std::thread::id thread;
  bool invalid = false;
};

// Adds a node behind what the stream captured last.
void capture_work(CUstream_st& stream, Work work);
void capture_allocation(CUstream_st& stream, std::uint64_t address, std::size_t bytes);
void capture_record(CUstream_st& stream, CUevent_st& event, bool external);
void capture_wait(CUstream_st& stream, CUevent_st& event, bool external);

// A forbidden call ends the capture's validity; cudaStreamEndCapture then reports it.
void invalidate_capture(Capture& capture);

// Work on the legacy stream would wait for the blocking streams that are being captured: an error.
void forbid_legacy_during_capture();

}  // namespace machine::runtime
