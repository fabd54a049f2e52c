// Building copies and sets from what the program passes: checks of pointers and directions, staging, waiting.
#pragma once

#include <cuda_runtime_api.h>

#include "runtime/stream.hpp"
#include "runtime/work.hpp"

namespace machine::runtime {

// Whether the host waits for the transfer, as the call's documentation says it may.
enum class Host { waits, goes_on };

// What the machine knows about the memory behind an address.
enum class Place { device, pinned, managed, pageable };
Place place_of(std::uint64_t address);

// A copy whose planes and direction have been checked against the objects that they lie in. Throws ApiError.
CopyWork checked_copy(const char* call, Plane destination, Plane source, Extent extent, cudaMemcpyKind kind);

// Queues a copy. Pageable sources are staged; what ends in pageable memory is waited for; copies between device
// memory and sets are not waited for, even in their synchronous form, since the documentation does not promise it.
cudaError_t submit_copy(CUstream_st& stream, CopyWork work, Host host, Lock& lock);

SetWork checked_set(const char* call, Plane destination, Extent extent, std::uint32_t value, unsigned element);
cudaError_t submit_set(CUstream_st& stream, SetWork work, Lock& lock);

// Throws cudaErrorInvalidValue unless [address, address + bytes) lies in one live object of the device. With memcheck
// on, only the start is looked at: the check itself then reports the range, with its place.
const Object& device_object(std::uint64_t address, std::uint64_t bytes, const char* role);

}  // namespace machine::runtime
