// What cudaDeviceSetLimit sets: the stack of a thread, the heap of device-side malloc, buffers.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

namespace machine::runtime {

// Throws ApiError for a limit that the CPU device does not know, and for a value that it cannot have.
std::size_t device_limit(cudaLimit which);
void set_device_limit(cudaLimit which, std::size_t value);

}  // namespace machine::runtime
