#include "runtime/device_limits.hpp"

#include <atomic>

#include "memory/device_heap.hpp"
#include "runtime/api.hpp"

namespace machine::runtime {
namespace {

struct LimitValue {
  cudaLimit which;
  std::atomic<std::size_t> value;  // a launch reads it while the host may set it
};
LimitValue device_limits[] = {
    {cudaLimitStackSize, 1024},
    {cudaLimitPrintfFifoSize, 7405568},
    {cudaLimitMallocHeapSize, 8388608},
    {cudaLimitDevRuntimeSyncDepth, 2},
    {cudaLimitDevRuntimePendingLaunchCount, 2048},
    {cudaLimitMaxL2FetchGranularity, 64},
    {cudaLimitPersistingL2CacheSize, 0},
};

LimitValue& limit_of(cudaLimit which) {
  for (auto& limit : device_limits)
    if (limit.which == which) return limit;
  fail(cudaErrorInvalidValue, "the CPU device knows no such limit");
}

}  // namespace

std::size_t device_limit(cudaLimit which) { return limit_of(which).value; }

void set_device_limit(cudaLimit which, std::size_t value) {
  LimitValue& limit = limit_of(which);
  // A thread has at most 512 KB of local memory.
  require(which != cudaLimitStackSize || value <= std::size_t{512} << 10, cudaErrorInvalidValue,
          "the stack is larger than a thread's local memory");
  require(which != cudaLimitMallocHeapSize || !DeviceHeap::instance().in_use(), cudaErrorInvalidValue,
          "a kernel that uses malloc() or free() has been launched, and the heap keeps its size");
  limit.value = value;
}

}  // namespace machine::runtime
