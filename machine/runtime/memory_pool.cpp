#include "runtime/memory_pool.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <set>

#include "runtime/api.hpp"

struct CUmemPoolHandle_st {
  std::uint64_t release_threshold = 0;
  std::uint64_t used = 0;
  std::uint64_t used_high = 0;
  int reuse_follow_event = 1, reuse_opportunistic = 1, reuse_internal = 1;
};

namespace machine::runtime {
namespace {

CUmemPoolHandle_st& default_pool() {
  static auto* const only = new CUmemPoolHandle_st;
  return *only;
}

CUmemPoolHandle_st*& current_pool() {
  static CUmemPoolHandle_st* current = &default_pool();
  return current;
}

std::set<CUmemPoolHandle_st*>& created_pools() {
  static auto* const only = new std::set<CUmemPoolHandle_st*>;
  return *only;
}

CUmemPoolHandle_st& pool_of(cudaMemPool_t pool) {
  if (pool != &default_pool() && !created_pools().contains(pool))
    fail(cudaErrorInvalidValue, "the memory pool does not exist");
  return *pool;
}

cudaError_t attribute(CUmemPoolHandle_st& pool, cudaMemPoolAttr which, void* value, bool write) {
  auto exchange = [&](auto& field) {
    if (write) std::memcpy(&field, value, sizeof field);
    else std::memcpy(value, &field, sizeof field);
    return cudaSuccess;
  };
  switch (which) {
    case cudaMemPoolReuseFollowEventDependencies: return exchange(pool.reuse_follow_event);
    case cudaMemPoolReuseAllowOpportunistic: return exchange(pool.reuse_opportunistic);
    case cudaMemPoolReuseAllowInternalDependencies: return exchange(pool.reuse_internal);
    case cudaMemPoolAttrReleaseThreshold: return exchange(pool.release_threshold);
    case cudaMemPoolAttrReservedMemCurrent:
    case cudaMemPoolAttrUsedMemCurrent:
      require(!write, cudaErrorInvalidValue, "the attribute cannot be set");
      return exchange(pool.used);
    case cudaMemPoolAttrReservedMemHigh:
    case cudaMemPoolAttrUsedMemHigh:
      if (write) pool.used_high = pool.used;
      else std::memcpy(value, &pool.used_high, sizeof pool.used_high);
      return cudaSuccess;
    default: fail(cudaErrorInvalidValue, "unknown attribute of a memory pool");
  }
}

}  // namespace

void pool_took(std::size_t bytes) {
  default_pool().used += bytes;
  default_pool().used_high = std::max(default_pool().used_high, default_pool().used);
}

void pool_gave_back(std::size_t bytes) { default_pool().used -= std::min<std::uint64_t>(bytes, default_pool().used); }

}  // namespace machine::runtime

using namespace machine::runtime;

namespace {
cudaError_t hand_out(const char* call, cudaMemPool_t* pool, int device, CUmemPoolHandle_st* (*which)()) {
  return entry(call, [&](Lock&) {
    require(pool && device == 0, cudaErrorInvalidDevice, "there is one device, number 0");
    *pool = which();
    return cudaSuccess;
  });
}
CUmemPoolHandle_st* the_default() { return &default_pool(); }
CUmemPoolHandle_st* the_current() { return current_pool(); }
}  // namespace

extern "C" {

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int device) {
  return hand_out("cudaDeviceGetDefaultMemPool", pool, device, the_default);
}
cudaError_t cudaDeviceGetMemPool(cudaMemPool_t* pool, int device) {
  return hand_out("cudaDeviceGetMemPool", pool, device, the_current);
}
cudaError_t cudaDeviceSetMemPool(int device, cudaMemPool_t pool) {
  return entry("cudaDeviceSetMemPool", [&](Lock&) {
    require(device == 0, cudaErrorInvalidDevice, "there is one device, number 0");
    current_pool() = &pool_of(pool);
    return cudaSuccess;
  });
}
cudaError_t cudaMemPoolCreate(cudaMemPool_t* pool, const cudaMemPoolProps* properties) {
  return entry("cudaMemPoolCreate", [&](Lock&) {
    require(pool && properties, cudaErrorInvalidValue, "the pool's address or its properties are null");
    *pool = new CUmemPoolHandle_st;
    created_pools().insert(*pool);
    return cudaSuccess;
  });
}
cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool) {
  return entry("cudaMemPoolDestroy", [&](Lock&) {
    require(pool != &default_pool(), cudaErrorInvalidValue, "the default pool cannot be destroyed");
    CUmemPoolHandle_st* dead = &pool_of(pool);
    if (current_pool() == dead) current_pool() = &default_pool();
    created_pools().erase(dead);
    delete dead;
    return cudaSuccess;
  });
}
cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t) {
  return entry("cudaMemPoolTrimTo", [&](Lock&) { return (void)pool_of(pool), cudaSuccess; });
}
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, cudaMemPoolAttr which, void* value) {
  return entry("cudaMemPoolSetAttribute", [&](Lock&) {
    require(value, cudaErrorInvalidValue, "the value is null");
    return attribute(pool_of(pool), which, value, true);
  });
}
cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, cudaMemPoolAttr which, void* value) {
  return entry("cudaMemPoolGetAttribute", [&](Lock&) {
    require(value, cudaErrorInvalidValue, "the value is null");
    return attribute(pool_of(pool), which, value, false);
  });
}
cudaError_t cudaMemPoolSetAccess(cudaMemPool_t pool, const cudaMemAccessDesc*, size_t) {
  return entry("cudaMemPoolSetAccess", [&](Lock&) { return (void)pool_of(pool), cudaSuccess; });
}
cudaError_t cudaMemPoolGetAccess(cudaMemAccessFlags* flags, cudaMemPool_t pool, cudaMemLocation*) {
  return entry("cudaMemPoolGetAccess", [&](Lock&) {
    require(flags, cudaErrorInvalidValue, "the result's address is null");
    pool_of(pool);
    *flags = cudaMemAccessFlagsProtReadWrite;
    return cudaSuccess;
  });
}
}
