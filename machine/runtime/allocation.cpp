// Memory that the program allocates, registers and frees: plain, pinned, managed, pitched, stream-ordered.
#include <cstring>
#include <map>
#include <set>

#include "memory/address_space.hpp"
#include "memory/graph_memory.hpp"
#include "runtime/api.hpp"
#include "runtime/capture.hpp"
#include "runtime/host_guard.hpp"
#include "runtime/host_watch.hpp"
#include "runtime/limits.hpp"
#include "runtime/memory_pool.hpp"
#include "runtime/session.hpp"
#include "runtime/transfer.hpp"

using namespace machine::runtime;
using machine::AddressSpace;
using machine::Object;
using machine::ObjectKind;
using machine::ObjectState;

namespace {

constexpr std::size_t kPitchAlignment = 512;

std::uint64_t address_of(const void* pointer) { return reinterpret_cast<std::uint64_t>(pointer); }
void* pointer_to(const Object& object) { return reinterpret_cast<void*>(object.base); }

const Object& allocate(ObjectKind kind, std::size_t bytes, std::uint64_t operation) {
  const Object* object = AddressSpace::instance().allocate(kind, bytes, 512, {}, operation);
  if (!object)
    fail(cudaErrorMemoryAllocation, std::to_string(bytes) + " bytes asked for, " +
                                        std::to_string(limits().global_memory - AddressSpace::instance().used()) +
                                        " free on this device");
  notify([object](machine::Observer& checks) { checks.allocated(*object); });
  if (kind == ObjectKind::global) guard_from_host(*object);
  if (kind == ObjectKind::pinned || kind == ObjectKind::managed) watch_host_memory(*object);
  return *object;
}

cudaError_t allocate_now(const char* call, ObjectKind kind, void** result, std::size_t bytes) {
  return entry(call, [&](Lock&) {
    require(result, cudaErrorInvalidValue, "the result's address is null");
    *result = nullptr;
    if (bytes == 0) return cudaSuccess;
    *result = pointer_to(allocate(kind, bytes, host_access_operation()));
    return cudaSuccess;
  });
}

const Object& live_object_at(const void* pointer, bool host_memory) {
  const Object* object = AddressSpace::instance().find(address_of(pointer));
  if (object && object->base == address_of(pointer) && object->state == ObjectState::freed &&
      !machine::of_graph(object->base))
    fail(cudaErrorInvalidValue, "the memory was freed before (double free)");
  const bool fits = object && object->base == address_of(pointer) &&
                    (object->kind == ObjectKind::pinned) == host_memory &&
                    (host_memory || object->kind == ObjectKind::global || object->kind == ObjectKind::managed);
  if (!fits)
    fail(cudaErrorInvalidValue, object && object->kind == ObjectKind::heap
                                    ? "the memory is of malloc() in a kernel, and only free() in a kernel gives it back"
                                : object && object->contains(address_of(pointer))
                                    ? "the pointer is not the start of an allocation of this kind"
                                    : "the pointer was not returned by an allocating call");
  return *object;
}

// Bases of what cudaMallocAsync gave out.
std::set<std::uint64_t>& stream_ordered() {
  static auto* const only = new std::set<std::uint64_t>;
  return *only;
}

// Freeing waits for the device, as the documentation of cudaFree says it does. For memory of a pool or of a graph it
// says that the last use counts as over: the device is waited for here as well, but the host's program is not
// ordered behind it.
cudaError_t free_now(const char* call, const void* pointer, bool host_memory) {
  return entry(call, [&](Lock& lock) {
    if (!pointer) return cudaSuccess;
    const std::uint64_t base = live_object_at(pointer, host_memory).base;
    if (machine::of_graph(base) || stream_ordered().contains(base)) schedule().settle(lock);
    else schedule().wait_for_all(lock);
    if (machine::of_graph(base)) {
      const Object* object = AddressSpace::instance().find(base);
      require(machine::end_life(*object, host_access_operation()), cudaErrorInvalidValue,
              "the graph that owns the memory has freed it before (double free)");
      notify([object](machine::Observer& checks) { checks.released(*object); });
      return cudaSuccess;
    }
    forget_host_memory(base);
    const Object* object = AddressSpace::instance().release(base, host_access_operation());
    if (object) {
      unguard(*object);
      notify([object](machine::Observer& checks) { checks.released(*object); });
    }
    return cudaSuccess;
  });
}

std::map<std::uint64_t, unsigned>& host_flags() {
  static auto* const only = new std::map<std::uint64_t, unsigned>;
  return *only;
}

cudaError_t host_allocate(const char* call, void** result, std::size_t bytes, unsigned flags) {
  constexpr unsigned known = cudaHostAllocPortable | cudaHostAllocMapped | cudaHostAllocWriteCombined;
  if ((flags & ~known) != 0)
    return entry(call,
                 [](Lock&) -> cudaError_t { fail(cudaErrorInvalidValue, "the flags are no cudaHostAlloc flags"); });
  cudaError_t code = allocate_now(call, ObjectKind::pinned, result, bytes);
  if (code == cudaSuccess && *result) {
    Lock lock(state_mutex());
    host_flags()[address_of(*result)] = flags | cudaHostAllocMapped;
  }
  return code;
}

cudaError_t allocate_ordered(const char* call, void** result, std::size_t bytes, cudaStream_t handle, Default meaning) {
  return entry(call, [&](Lock& lock) {
    require(result, cudaErrorInvalidValue, "the result's address is null");
    *result = nullptr;
    CUstream_st& stream = stream_of(handle, meaning);
    if (bytes == 0) return cudaSuccess;
    if (stream.capture) {
      const Object& object = allocate(ObjectKind::global, bytes, host_access_operation());
      machine::give_to_graph(object);
      *result = pointer_to(object);
      capture_allocation(stream, object.base, bytes);
      return cudaSuccess;
    }
    TaskPtr task = enqueue(stream, AllocateWork{}, lock);
    const Object& object = allocate(ObjectKind::global, bytes, task->operation.id);
    pool_took(bytes);
    stream_ordered().insert(object.base);
    *result = pointer_to(object);
    return cudaSuccess;
  });
}

cudaError_t free_ordered(const char* call, void* pointer, cudaStream_t handle, Default meaning) {
  return entry(call, [&](Lock& lock) {
    if (!pointer) return cudaSuccess;
    const Object& object = live_object_at(pointer, false);
    pool_gave_back(object.size);
    enqueue(stream_of(handle, meaning), ReleaseWork{object.base}, lock);
    return cudaSuccess;
  });
}

std::size_t pitch_of(std::size_t width) { return (width + kPitchAlignment - 1) / kPitchAlignment * kPitchAlignment; }

cudaError_t attributes_of(cudaPointerAttributes* result, const void* pointer) {
  std::memset(result, 0, sizeof *result);
  const Object* object = AddressSpace::instance().find(address_of(pointer));
  result->type = cudaMemoryTypeUnregistered;
  result->device = -2;
  if (!object || (object->state == ObjectState::freed && !machine::of_graph(object->base))) return cudaSuccess;
  void* same = const_cast<void*>(pointer);
  const bool host = object->kind == ObjectKind::pinned || object->kind == ObjectKind::registered;
  result->type = object->kind == ObjectKind::managed ? cudaMemoryTypeManaged
                 : host                              ? cudaMemoryTypeHost
                                                     : cudaMemoryTypeDevice;
  result->device = 0;
  result->devicePointer = same;
  result->hostPointer = result->type == cudaMemoryTypeDevice ? nullptr : same;
  return cudaSuccess;
}

}  // namespace

extern "C" {

cudaError_t cudaMalloc(void** result, size_t bytes) {
  return allocate_now("cudaMalloc", ObjectKind::global, result, bytes);
}

cudaError_t cudaMallocManaged(void** result, size_t bytes, unsigned flags) {
  if (flags != cudaMemAttachGlobal && flags != cudaMemAttachHost)
    return entry("cudaMallocManaged", [](Lock&) -> cudaError_t {
      fail(cudaErrorInvalidValue, "the flags are neither cudaMemAttachGlobal nor cudaMemAttachHost");
    });
  return allocate_now("cudaMallocManaged", ObjectKind::managed, result, bytes);
}

cudaError_t cudaMallocHost(void** result, size_t bytes) { return host_allocate("cudaMallocHost", result, bytes, 0); }
cudaError_t cudaHostAlloc(void** result, size_t bytes, unsigned flags) {
  return host_allocate("cudaHostAlloc", result, bytes, flags);
}

cudaError_t cudaMallocPitch(void** result, size_t* pitch, size_t width, size_t height) {
  if (pitch) *pitch = pitch_of(width);
  return allocate_now("cudaMallocPitch", ObjectKind::global, result, pitch_of(width) * height);
}

cudaError_t cudaMalloc3D(cudaPitchedPtr* result, cudaExtent extent) {
  if (!result)
    return entry("cudaMalloc3D",
                 [](Lock&) -> cudaError_t { fail(cudaErrorInvalidValue, "the result's address is null"); });
  *result = {nullptr, pitch_of(extent.width), extent.width, extent.height};
  return allocate_now("cudaMalloc3D", ObjectKind::global, &result->ptr, result->pitch * extent.height * extent.depth);
}

cudaError_t cudaFree(void* pointer) { return free_now("cudaFree", pointer, false); }
cudaError_t cudaFreeHost(void* pointer) { return free_now("cudaFreeHost", pointer, true); }

cudaError_t cudaMallocAsync(void** result, size_t bytes, cudaStream_t s) {
  return allocate_ordered("cudaMallocAsync", result, bytes, s, Default::legacy);
}
cudaError_t cudaMallocAsync_ptsz(void** result, size_t bytes, cudaStream_t s) {
  return allocate_ordered("cudaMallocAsync", result, bytes, s, Default::per_thread);
}
cudaError_t cudaMallocFromPoolAsync(void** result, size_t bytes, cudaMemPool_t, cudaStream_t s) {
  return allocate_ordered("cudaMallocFromPoolAsync", result, bytes, s, Default::legacy);
}
cudaError_t cudaMallocFromPoolAsync_ptsz(void** result, size_t bytes, cudaMemPool_t, cudaStream_t s) {
  return allocate_ordered("cudaMallocFromPoolAsync", result, bytes, s, Default::per_thread);
}
cudaError_t cudaFreeAsync(void* pointer, cudaStream_t s) {
  return free_ordered("cudaFreeAsync", pointer, s, Default::legacy);
}
cudaError_t cudaFreeAsync_ptsz(void* pointer, cudaStream_t s) {
  return free_ordered("cudaFreeAsync", pointer, s, Default::per_thread);
}

cudaError_t cudaHostRegister(void* pointer, size_t bytes, unsigned flags) {
  return entry("cudaHostRegister", [&](Lock&) {
    require(pointer && bytes, cudaErrorInvalidValue, "the pointer is null or the size is 0");
    const Object* object = AddressSpace::instance().register_host(address_of(pointer), bytes, host_access_operation());
    if (!object) fail(cudaErrorHostMemoryAlreadyRegistered, "part of the range is registered already");
    host_flags()[object->base] = flags | cudaHostRegisterMapped;
    watch_host_memory(*object);
    notify([object](machine::Observer& checks) { checks.allocated(*object); });
    return cudaSuccess;
  });
}

cudaError_t cudaHostUnregister(void* pointer) {
  return entry("cudaHostUnregister", [&](Lock& lock) {
    const Object* object = AddressSpace::instance().find(address_of(pointer));
    if (!object || object->kind != ObjectKind::registered || object->base != address_of(pointer) ||
        object->state == ObjectState::freed)
      fail(cudaErrorHostMemoryNotRegistered, "the pointer is not the start of a registered range");
    schedule().wait_for_all(lock);
    forget_host_memory(address_of(pointer));
    object = AddressSpace::instance().release(address_of(pointer), host_access_operation());
    if (object) notify([object](machine::Observer& checks) { checks.released(*object); });
    return cudaSuccess;
  });
}

cudaError_t cudaHostGetDevicePointer(void** result, void* pointer, unsigned) {
  return entry("cudaHostGetDevicePointer", [&](Lock&) {
    require(result, cudaErrorInvalidValue, "the result's address is null");
    Place place = place_of(address_of(pointer));
    require(place == Place::pinned || place == Place::managed, cudaErrorInvalidValue,
            "the memory is not pinned or registered");
    *result = pointer;
    return cudaSuccess;
  });
}

cudaError_t cudaHostGetFlags(unsigned* flags, void* pointer) {
  return entry("cudaHostGetFlags", [&](Lock&) {
    auto found = host_flags().find(address_of(pointer));
    require(flags && found != host_flags().end(), cudaErrorInvalidValue, "the memory is not pinned");
    *flags = found->second;
    return cudaSuccess;
  });
}

cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  return entry("cudaMemGetInfo", [&](Lock&) {
    require(free && total, cudaErrorInvalidValue, "a result's address is null");
    *total = limits().global_memory;
    const std::size_t used = AddressSpace::instance().used();
    *free = *total > used ? *total - used : 0;
    return cudaSuccess;
  });
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* result, const void* pointer) {
  return entry("cudaPointerGetAttributes", [&](Lock&) {
    require(result, cudaErrorInvalidValue, "the result's address is null");
    return attributes_of(result, pointer);
  });
}
}
