// Attributes of kernels.
#include <algorithm>
#include <cstring>

#include "runtime/api.hpp"
#include "runtime/limits.hpp"
#include "runtime/occupancy.hpp"
#include "runtime/options.hpp"

using namespace machine::runtime;

namespace {

cudaError_t fill(cudaFuncAttributes* result, CUkern_st& kernel) {
  const auto& attributes = kernel.kernel().attributes();
  std::memset(result, 0, sizeof *result);
  result->sharedSizeBytes = attributes.static_shared;
  result->localSizeBytes = attributes.local_bytes;
  result->maxThreadsPerBlock = static_cast<int>(std::min<unsigned>(attributes.max_threads, kMaxThreadsPerBlock));
  result->numRegs = static_cast<int>(registers_of(kernel));
  result->ptxVersion = static_cast<int>(options().architecture);
  result->binaryVersion = static_cast<int>(options().architecture);
  result->maxDynamicSharedSizeBytes = static_cast<int>(kernel.dynamic_shared_limit());
  result->preferredShmemCarveout = kernel.carveout;
  const auto required = [&](int k, std::uint32_t built_in) {
    const unsigned set = kernel.required_cluster[static_cast<std::size_t>(k)];
    return static_cast<int>(set != 0 ? set : built_in);
  };
  result->requiredClusterWidth = required(0, attributes.cluster.x);
  result->requiredClusterHeight = required(1, attributes.cluster.y);
  result->requiredClusterDepth = required(2, attributes.cluster.z);
  result->nonPortableClusterSizeAllowed = kernel.non_portable_cluster;
  return cudaSuccess;
}

cudaError_t set_dynamic_shared(CUkern_st& kernel, int value) {
  const std::size_t used = kernel.kernel().attributes().static_shared;
  const std::size_t most = limits().shared_per_block_optin;
  if (value < 0 || used + static_cast<std::size_t>(value) > most)
    fail(cudaErrorInvalidValue, std::to_string(value) + " bytes of dynamic shared memory beside " +
                                    std::to_string(used) + " of static are more than the " + std::to_string(most) +
                                    " that sm_" + std::to_string(limits().architecture) + " has a block");
  kernel.max_dynamic_shared = value;
  return cudaSuccess;
}

cudaError_t set_attribute(CUkern_st& kernel, cudaFuncAttribute which, int value) {
  switch (which) {
    case cudaFuncAttributeMaxDynamicSharedMemorySize: return set_dynamic_shared(kernel, value);
    case cudaFuncAttributePreferredSharedMemoryCarveout:
      require(value >= -1 && value <= 100, cudaErrorInvalidValue, "the carveout is no percentage");
      kernel.carveout = value;
      return cudaSuccess;
    case cudaFuncAttributeNonPortableClusterSizeAllowed: kernel.non_portable_cluster = value; return cudaSuccess;
    case cudaFuncAttributeRequiredClusterWidth:
    case cudaFuncAttributeRequiredClusterHeight:
    case cudaFuncAttributeRequiredClusterDepth:
      require(value >= 0, cudaErrorInvalidValue, "the cluster's size is negative");
      kernel.required_cluster[static_cast<std::size_t>(which - cudaFuncAttributeRequiredClusterWidth)] =
          static_cast<unsigned>(value);
      return cudaSuccess;
    case cudaFuncAttributeClusterSchedulingPolicyPreference:
      require(value >= cudaClusterSchedulingPolicyDefault && value <= cudaClusterSchedulingPolicyLoadBalancing,
              cudaErrorInvalidValue, "there is no such scheduling policy");
      return cudaSuccess;
    default: fail(cudaErrorInvalidValue, "this attribute of a kernel cannot be set");
  }
}

}  // namespace

extern "C" {

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* result, const void* f) {
  return entry("cudaFuncGetAttributes", [&](Lock&) {
    require(result, cudaErrorInvalidValue, "the result's address is null");
    return fill(result, kernel_of(f));
  });
}
cudaError_t cudaFuncSetAttribute(const void* f, cudaFuncAttribute which, int value) {
  return entry("cudaFuncSetAttribute", [&](Lock&) { return set_attribute(kernel_of(f), which, value); });
}
cudaError_t cudaKernelSetAttributeForDevice(cudaKernel_t kernel, cudaFuncAttribute which, int value, int device) {
  return entry("cudaKernelSetAttributeForDevice", [&](Lock&) {
    require(device == 0, cudaErrorInvalidDevice, "there is one device, number 0");
    return set_attribute(kernel_of(kernel), which, value);
  });
}
cudaError_t cudaFuncSetCacheConfig(const void* f, cudaFuncCache) {
  return entry("cudaFuncSetCacheConfig", [&](Lock&) { return (void)kernel_of(f), cudaSuccess; });
}
cudaError_t cudaFuncSetSharedMemConfig(const void* f, cudaSharedMemConfig) {
  return entry("cudaFuncSetSharedMemConfig", [&](Lock&) { return (void)kernel_of(f), cudaSuccess; });
}
cudaError_t cudaFuncGetName(const char** name, const void* f) {
  return entry("cudaFuncGetName", [&](Lock&) {
    require(name, cudaErrorInvalidValue, "the result's address is null");
    *name = kernel_of(f).name.c_str();
    return cudaSuccess;
  });
}
cudaError_t cudaFuncGetParamInfo(const void* f, size_t index, size_t* offset, size_t* size) {
  return entry("cudaFuncGetParamInfo", [&](Lock&) {
    auto params = kernel_of(f).kernel().params();
    require(offset && index < params.size(), cudaErrorInvalidValue, "the kernel has no such parameter");
    *offset = params[index].offset;
    if (size) *size = params[index].size;
    return cudaSuccess;
  });
}
cudaError_t cudaFuncGetParamCount(const void* f, size_t* count) {
  return entry("cudaFuncGetParamCount", [&](Lock&) {
    require(count, cudaErrorInvalidValue, "the result's address is null");
    *count = kernel_of(f).kernel().params().size();
    return cudaSuccess;
  });
}
}
