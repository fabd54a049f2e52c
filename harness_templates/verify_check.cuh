// Every CUDA call of the harness goes through VERIFY_CHECK: a failure names the call, file and line.
#pragma once

#include <cuda_runtime.h>

#include <stdexcept>
#include <string>

namespace verify {

struct CudaFailure : std::runtime_error {
    using std::runtime_error::runtime_error;
};

inline std::string describe(cudaError_t status) {
    return std::string(cudaGetErrorName(status)) + " (" + cudaGetErrorString(status) + ")";
}

inline void check(cudaError_t status, const char* call, const char* file, int line) {
    if (status == cudaSuccess) return;
    const std::string path(file);
    throw CudaFailure(describe(status) + " from " + call + " at " + path.substr(path.rfind('/') + 1) + ":" +
                      std::to_string(line));
}

#define VERIFY_CHECK(call) ::verify::check((call), #call, __FILE__, __LINE__)

}  // namespace verify
