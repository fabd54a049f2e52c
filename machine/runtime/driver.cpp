// The few driver functions that a runtime program can ask for by name, and what else belongs to no other file.
#include <cuda.h>

#include <atomic>
#include <cstring>

#include "runtime/api.hpp"
#include "runtime/graph.hpp"
#include "runtime/tensor_map.hpp"

using namespace machine::runtime;

namespace {

CUresult driver_version(int* version) {
  return cudaDriverGetVersion(version) == cudaSuccess ? CUDA_SUCCESS : CUDA_ERROR_UNKNOWN;
}
CUresult initialise(unsigned) { return CUDA_SUCCESS; }
CUresult device_count(int* count) { return static_cast<CUresult>(cudaGetDeviceCount(count)); }
CUresult device_get(CUdevice* device, int ordinal) {
  return ordinal == 0 ? (*device = 0, CUDA_SUCCESS) : CUDA_ERROR_INVALID_DEVICE;
}
CUresult device_attribute(int* value, CUdevice_attribute which, CUdevice device) {
  return static_cast<CUresult>(cudaDeviceGetAttribute(value, static_cast<cudaDeviceAttr>(which), device));
}
CUresult error_text_of(CUresult code, const char** text) {
  return *text = error_text(static_cast<cudaError_t>(code)), CUDA_SUCCESS;
}
CUresult error_name_of(CUresult code, const char** text) {
  return *text = error_name(static_cast<cudaError_t>(code)), CUDA_SUCCESS;
}

const DriverFunction driver_functions[] = {
    {"cuInit", reinterpret_cast<void*>(initialise)},
    {"cuDriverGetVersion", reinterpret_cast<void*>(driver_version)},
    {"cuDeviceGetCount", reinterpret_cast<void*>(device_count)},
    {"cuDeviceGet", reinterpret_cast<void*>(device_get)},
    {"cuDeviceGetAttribute", reinterpret_cast<void*>(device_attribute)},
    {"cuGetErrorString", reinterpret_cast<void*>(error_text_of)},
    {"cuGetErrorName", reinterpret_cast<void*>(error_name_of)},
};

// A function that the CPU device lacks is reported as such in the status, which is how a program finds out.
cudaError_t entry_point(const char* call, const char* symbol, void** function,
                        cudaDriverEntryPointQueryResult* status) {
  return entry(call, [&](Lock&) {
    require(symbol && function, cudaErrorInvalidValue, "the name or the result's address is null");
    *function = nullptr;
    for (const auto& known : driver_functions)
      if (std::strcmp(known.name, symbol) == 0) *function = known.function;
    for (const auto& known : tensor_map_functions())
      if (std::strcmp(known.name, symbol) == 0) *function = known.function;
    if (status) *status = *function ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
    return cudaSuccess;
  });
}

}  // namespace

struct CUuserObject_st {
  void* pointer;
  cudaHostFn_t destroy;
  std::atomic<unsigned> count;
};

extern "C" {

cudaError_t cudaGetDriverEntryPoint(const char* symbol, void** function, unsigned long long,
                                    cudaDriverEntryPointQueryResult* status) {
  return entry_point("cudaGetDriverEntryPoint", symbol, function, status);
}
cudaError_t cudaGetDriverEntryPoint_ptsz(const char* symbol, void** function, unsigned long long,
                                         cudaDriverEntryPointQueryResult* status) {
  return entry_point("cudaGetDriverEntryPoint", symbol, function, status);
}
cudaError_t cudaGetDriverEntryPointByVersion(const char* symbol, void** function, unsigned, unsigned long long,
                                             cudaDriverEntryPointQueryResult* status) {
  return entry_point("cudaGetDriverEntryPointByVersion", symbol, function, status);
}
cudaError_t cudaGetDriverEntryPointByVersion_ptsz(const char* symbol, void** function, unsigned, unsigned long long,
                                                  cudaDriverEntryPointQueryResult* status) {
  return entry_point("cudaGetDriverEntryPointByVersion", symbol, function, status);
}

cudaError_t cudaUserObjectCreate(cudaUserObject_t* object, void* pointer, cudaHostFn_t destroy, unsigned count,
                                 unsigned) {
  return entry("cudaUserObjectCreate", [&](Lock&) {
    require(object && destroy && count, cudaErrorInvalidValue, "an argument is null or the count is 0");
    *object = new CUuserObject_st{pointer, destroy, {count}};
    return cudaSuccess;
  });
}
cudaError_t cudaUserObjectRetain(cudaUserObject_t object, unsigned count) {
  object->count += count;
  return cudaSuccess;
}
cudaError_t cudaUserObjectRelease(cudaUserObject_t object, unsigned count) {
  if ((object->count -= count) == 0) {
    object->destroy(object->pointer);
    delete object;
  }
  return cudaSuccess;
}
cudaError_t cudaGraphRetainUserObject(cudaGraph_t graph, cudaUserObject_t object, unsigned count, unsigned flags) {
  return entry("cudaGraphRetainUserObject", [&](Lock&) {
    if (!(flags & cudaGraphUserObjectMove)) object->count += count;
    graph_of(graph).user_objects.emplace_back(object, count);
    return cudaSuccess;
  });
}
cudaError_t cudaGraphReleaseUserObject(cudaGraph_t graph, cudaUserObject_t object, unsigned count) {
  return entry("cudaGraphReleaseUserObject", [&](Lock&) {
    auto& held = graph_of(graph).user_objects;
    for (auto it = held.begin(); it != held.end(); ++it)
      if (it->first == object && it->second == count) {
        held.erase(it);
        return cudaUserObjectRelease(object, count);
      }
    fail(cudaErrorInvalidValue, "the graph does not hold the object");
  });
}
}
