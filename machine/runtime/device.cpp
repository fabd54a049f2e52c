// The device as a program sees it: count, properties, attributes, limits, versions.
#include <cstdio>
#include <cstring>

#include "memory/address_space.hpp"
#include "memory/device_heap.hpp"
#include "runtime/api.hpp"
#include "runtime/device_limits.hpp"
#include "runtime/host_guard.hpp"
#include "runtime/host_watch.hpp"
#include "runtime/limits.hpp"
#include "runtime/session.hpp"
#include "runtime/stream.hpp"

using namespace machine::runtime;

namespace {

constexpr int kTexture = 131072;  // extents of textures, which no kernel here can use; programs print them
constexpr int kLayers = 2048;

int attribute(cudaDeviceAttr which) {
  const Limits& device = limits();
  switch (which) {
    case cudaDevAttrMaxThreadsPerBlock: return kMaxThreadsPerBlock;
    case cudaDevAttrMaxBlockDimX: return static_cast<int>(kMaxBlock[0]);
    case cudaDevAttrMaxBlockDimY: return static_cast<int>(kMaxBlock[1]);
    case cudaDevAttrMaxBlockDimZ: return static_cast<int>(kMaxBlock[2]);
    case cudaDevAttrMaxGridDimX: return static_cast<int>(kMaxGrid[0]);
    case cudaDevAttrMaxGridDimY: return static_cast<int>(kMaxGrid[1]);
    case cudaDevAttrMaxGridDimZ: return static_cast<int>(kMaxGrid[2]);
    case cudaDevAttrMaxSharedMemoryPerBlock: return static_cast<int>(device.shared_per_block);
    case cudaDevAttrMaxSharedMemoryPerBlockOptin: return static_cast<int>(device.shared_per_block_optin);
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor: return static_cast<int>(device.shared_per_multiprocessor);
    case cudaDevAttrReservedSharedMemoryPerBlock: return static_cast<int>(device.shared_reserved);
    case cudaDevAttrTotalConstantMemory: return static_cast<int>(kConstantBytes);
    case cudaDevAttrWarpSize: return 32;
    case cudaDevAttrMaxPitch: return 0x7fffffff;
    case cudaDevAttrMaxRegistersPerBlock:
    case cudaDevAttrMaxRegistersPerMultiprocessor: return device.registers_per_multiprocessor;
    case cudaDevAttrClockRate: return device.clock_khz;
    case cudaDevAttrMemoryClockRate: return device.memory_clock_khz;
    case cudaDevAttrGlobalMemoryBusWidth: return device.memory_bus_bits;
    case cudaDevAttrL2CacheSize: return device.l2_bytes;
    case cudaDevAttrMaxPersistingL2CacheSize: return device.persisting_l2_bytes;
    case cudaDevAttrMaxAccessPolicyWindowSize: return 128 << 20;
    case cudaDevAttrMultiProcessorCount: return device.multiprocessors;
    case cudaDevAttrMaxThreadsPerMultiProcessor: return device.threads_per_multiprocessor;
    case cudaDevAttrMaxBlocksPerMultiprocessor: return device.blocks_per_multiprocessor;
    case cudaDevAttrComputeCapabilityMajor: return static_cast<int>(device.architecture / 10);
    case cudaDevAttrComputeCapabilityMinor: return static_cast<int>(device.architecture % 10);
    case cudaDevAttrTextureAlignment: return 512;
    case cudaDevAttrTexturePitchAlignment: return 32;
    case cudaDevAttrSurfaceAlignment: return 512;
    case cudaDevAttrGpuOverlap:
    case cudaDevAttrCanMapHostMemory:
    case cudaDevAttrConcurrentKernels:
    case cudaDevAttrEccEnabled:
    case cudaDevAttrUnifiedAddressing:
    case cudaDevAttrStreamPrioritiesSupported:
    case cudaDevAttrGlobalL1CacheSupported:
    case cudaDevAttrLocalL1CacheSupported:
    case cudaDevAttrManagedMemory:
    case cudaDevAttrConcurrentManagedAccess:
    case cudaDevAttrComputePreemptionSupported:
    case cudaDevAttrCanUseHostPointerForRegisteredMem:
    case cudaDevAttrCooperativeLaunch:
    case cudaDevAttrHostRegisterSupported:
    case cudaDevAttrMemoryPoolsSupported:
    case cudaDevAttrHostRegisterReadOnlySupported: return 1;
    case cudaDevAttrAsyncEngineCount: return 3;
    case cudaDevAttrClusterLaunch: return device.clusters;
    case cudaDevAttrSingleToDoublePrecisionPerfRatio: return 2;
    case cudaDevAttrMaxTexture1DWidth:
    case cudaDevAttrMaxTexture2DWidth:
    case cudaDevAttrMaxSurface2DWidth: return kTexture;
    case cudaDevAttrMaxTexture2DHeight:
    case cudaDevAttrMaxSurface2DHeight: return kTexture / 2;
    case cudaDevAttrMaxTexture1DLayeredLayers:
    case cudaDevAttrMaxTexture2DLayeredLayers: return kLayers;
    case cudaDevAttrNumaId:
    case cudaDevAttrHostNumaId: return -1;
    default: return 0;
  }
}

void fill(cudaDeviceProp& p) {
  const Limits& device = limits();
  std::memset(&p, 0, sizeof p);
  std::snprintf(p.name, sizeof p.name, "%s", device.name);
  std::memcpy(&p.uuid, "verify-cpu-device", sizeof p.uuid);
  p.totalGlobalMem = device.global_memory;
  p.sharedMemPerBlock = device.shared_per_block;
  p.sharedMemPerBlockOptin = device.shared_per_block_optin;
  p.sharedMemPerMultiprocessor = device.shared_per_multiprocessor;
  p.reservedSharedMemPerBlock = device.shared_reserved;
  p.regsPerBlock = p.regsPerMultiprocessor = device.registers_per_multiprocessor;
  p.warpSize = 32;
  p.memPitch = 0x7fffffff;
  p.maxThreadsPerBlock = kMaxThreadsPerBlock;
  for (int i = 0; i < 3; ++i) {
    p.maxThreadsDim[i] = static_cast<int>(kMaxBlock[i]);
    p.maxGridSize[i] = static_cast<int>(kMaxGrid[i]);
  }
  p.totalConstMem = kConstantBytes;
  p.major = attribute(cudaDevAttrComputeCapabilityMajor);
  p.minor = attribute(cudaDevAttrComputeCapabilityMinor);
  p.textureAlignment = p.surfaceAlignment = 512;
  p.texturePitchAlignment = 32;
  p.multiProcessorCount = device.multiprocessors;
  p.maxThreadsPerMultiProcessor = device.threads_per_multiprocessor;
  p.maxBlocksPerMultiProcessor = device.blocks_per_multiprocessor;
  p.memoryBusWidth = device.memory_bus_bits;
  p.l2CacheSize = device.l2_bytes;
  p.persistingL2CacheMaxSize = device.persisting_l2_bytes;
  p.accessPolicyMaxWindowSize = attribute(cudaDevAttrMaxAccessPolicyWindowSize);
  p.asyncEngineCount = 3;
  p.clusterLaunch = device.clusters;
  p.canMapHostMemory = p.concurrentKernels = p.ECCEnabled = p.unifiedAddressing = p.streamPrioritiesSupported = 1;
  p.globalL1CacheSupported = p.localL1CacheSupported = p.managedMemory = p.concurrentManagedAccess = 1;
  p.computePreemptionSupported = p.canUseHostPointerForRegisteredMem = p.cooperativeLaunch = 1;
  p.hostRegisterSupported = p.hostRegisterReadOnlySupported = p.memoryPoolsSupported = p.unifiedFunctionPointers = 1;
  p.deviceNumaId = p.hostNumaId = -1;
}

void require_device(int device) { require(device == 0, cudaErrorInvalidDevice, "there is one device, number 0"); }

unsigned device_flags = cudaDeviceScheduleAuto;

template <class Body>
cudaError_t on_device(const char* call, int device, Body body) {
  return entry(call, [&](Lock&) {
    require_device(device);
    body();
    return cudaSuccess;
  });
}

cudaError_t prefetch(const char* call, const void* pointer, size_t bytes, cudaStream_t stream, Default meaning) {
  return entry(call, [&](Lock&) {
    stream_of(stream, meaning);
    const auto* object = machine::AddressSpace::instance().find(reinterpret_cast<std::uint64_t>(pointer));
    require(object && object->contains(reinterpret_cast<std::uint64_t>(pointer), bytes), cudaErrorInvalidValue,
            "the range is no managed memory");
    return cudaSuccess;
  });
}

}  // namespace

extern "C" {

cudaError_t cudaGetDeviceCount(int* count) {
  return entry("cudaGetDeviceCount", [&](Lock&) {
    require(count, cudaErrorInvalidValue, "the result's address is null");
    *count = 1;
    return cudaSuccess;
  });
}
cudaError_t cudaGetDevice(int* device) {
  return entry("cudaGetDevice", [&](Lock&) {
    require(device, cudaErrorInvalidValue, "the result's address is null");
    *device = 0;
    return cudaSuccess;
  });
}
cudaError_t cudaSetDevice(int device) {
  return on_device("cudaSetDevice", device, [] {});
}
cudaError_t cudaInitDevice(int device, unsigned, unsigned) {
  return on_device("cudaInitDevice", device, [] {});
}
cudaError_t cudaSetValidDevices(int*, int) {
  return on_device("cudaSetValidDevices", 0, [] {});
}
cudaError_t cudaChooseDevice(int* device, const cudaDeviceProp*) {
  return on_device("cudaChooseDevice", 0, [&] { *device = 0; });
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  return on_device("cudaGetDeviceProperties", device, [&] {
    require(properties, cudaErrorInvalidValue, "the result's address is null");
    fill(*properties);
  });
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr which, int device) {
  return on_device("cudaDeviceGetAttribute", device, [&] {
    require(value && which > 0 && which < cudaDevAttrMax, cudaErrorInvalidValue, "unknown device attribute");
    *value = attribute(which);
  });
}
cudaError_t cudaDeviceGetP2PAttribute(int* value, cudaDeviceP2PAttr, int, int) {
  return entry("cudaDeviceGetP2PAttribute", [&](Lock&) -> cudaError_t {
    (void)value;
    fail(cudaErrorInvalidDevice, "there is one device, number 0");
  });
}
cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int peer) {
  return on_device("cudaDeviceCanAccessPeer", device, [&] {
    require_device(peer);
    *can = 0;
  });
}
cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned) {
  return on_device("cudaDeviceEnablePeerAccess", peer == 0 ? -1 : peer, [] {});
}
cudaError_t cudaDeviceDisablePeerAccess(int peer) {
  return on_device("cudaDeviceDisablePeerAccess", peer == 0 ? -1 : peer, [] {});
}
cudaError_t cudaDeviceGetPCIBusId(char* id, int length, int device) {
  return on_device("cudaDeviceGetPCIBusId", device,
                   [&] { std::snprintf(id, static_cast<std::size_t>(length), "0000:00:00.0"); });
}
cudaError_t cudaDeviceGetByPCIBusId(int* device, const char* id) {
  return on_device("cudaDeviceGetByPCIBusId", id && std::strcmp(id, "0000:00:00.0") == 0 ? 0 : -1,
                   [&] { *device = 0; });
}
cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  return on_device("cudaDeviceGetStreamPriorityRange", 0, [&] {
    if (least) *least = 0;
    if (greatest) *greatest = -5;
  });
}

cudaError_t cudaDeviceSetLimit(cudaLimit which, size_t value) {
  return on_device("cudaDeviceSetLimit", 0, [&] { set_device_limit(which, value); });
}
cudaError_t cudaDeviceGetLimit(size_t* value, cudaLimit which) {
  return on_device("cudaDeviceGetLimit", 0, [&] {
    require(value, cudaErrorInvalidValue, "the result's address is null");
    *value = device_limit(which);
  });
}
cudaError_t cudaDeviceSetCacheConfig(cudaFuncCache) {
  return on_device("cudaDeviceSetCacheConfig", 0, [] {});
}
cudaError_t cudaDeviceGetCacheConfig(cudaFuncCache* config) {
  return on_device("cudaDeviceGetCacheConfig", 0, [&] { *config = cudaFuncCachePreferNone; });
}
cudaError_t cudaDeviceSetSharedMemConfig(cudaSharedMemConfig) {
  return on_device("cudaDeviceSetSharedMemConfig", 0, [] {});
}
cudaError_t cudaDeviceGetSharedMemConfig(cudaSharedMemConfig* config) {
  return on_device("cudaDeviceGetSharedMemConfig", 0, [&] { *config = cudaSharedMemBankSizeFourByte; });
}
cudaError_t cudaSetDeviceFlags(unsigned flags) {
  return on_device("cudaSetDeviceFlags", 0, [&] { device_flags = flags; });
}
cudaError_t cudaGetDeviceFlags(unsigned* flags) {
  return on_device("cudaGetDeviceFlags", 0, [&] { *flags = device_flags | cudaDeviceMapHost; });
}
cudaError_t cudaCtxResetPersistingL2Cache() {
  return on_device("cudaCtxResetPersistingL2Cache", 0, [] {});
}
cudaError_t cudaProfilerStart() {
  return on_device("cudaProfilerStart", 0, [] {});
}
cudaError_t cudaProfilerStop() {
  return on_device("cudaProfilerStop", 0, [] {});
}

// Waits, gives back every allocation, and makes the device usable again after a sticky error.
cudaError_t cudaDeviceReset() {
  if (after_fork())
    return conclude("cudaDeviceReset", cudaErrorInitializationError, "the process was forked after CUDA was used");
  start();
  Lock lock(state_mutex());
  schedule().wait_for_all(lock);
  clear_context_error();
  machine::DeviceHeap::instance().reset();
  for (const auto* object : machine::AddressSpace::instance().live()) {
    if (!object->name.empty() || object->kind == machine::ObjectKind::registered) continue;
    if (!begins_unwritten(object->kind) && object->kind != machine::ObjectKind::managed &&
        object->kind != machine::ObjectKind::pinned)
      continue;
    forget_host_memory(object->base);
    const auto* freed = machine::AddressSpace::instance().release(object->base, host_access_operation());
    if (!freed) continue;
    unguard(*freed);
    notify([freed](machine::Observer& checks) { checks.released(*freed); });
  }
  return cudaSuccess;
}

cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w, cudaChannelFormatKind kind) {
  return {x, y, z, w, kind};
}

cudaError_t cudaRuntimeGetVersion(int* version) {
  return on_device("cudaRuntimeGetVersion", 0, [&] { *version = CUDART_VERSION; });
}
cudaError_t cudaDriverGetVersion(int* version) {
  return on_device("cudaDriverGetVersion", 0, [&] { *version = CUDART_VERSION; });
}

// Where pages lie makes no difference here.
cudaError_t cudaMemPrefetchAsync(const void* pointer, size_t bytes, cudaMemLocation, unsigned, cudaStream_t s) {
  return prefetch("cudaMemPrefetchAsync", pointer, bytes, s, Default::legacy);
}
cudaError_t cudaMemPrefetchAsync_ptsz(const void* pointer, size_t bytes, cudaMemLocation, unsigned, cudaStream_t s) {
  return prefetch("cudaMemPrefetchAsync", pointer, bytes, s, Default::per_thread);
}
cudaError_t cudaMemAdvise(const void* pointer, size_t bytes, cudaMemoryAdvise, cudaMemLocation) {
  return prefetch("cudaMemAdvise", pointer, bytes, nullptr, Default::legacy);
}
}
