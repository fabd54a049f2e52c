// `info`: what the device is, as one line of JSON.
#pragma once

#include <cstdio>

#include "verify_check.cuh"

namespace verify {

inline std::string json_text(const std::string& text) {
    std::string quoted = "\"";
    for (const char c : text) {
        if (c == '"' || c == '\\') quoted += '\\';
        if (static_cast<unsigned char>(c) >= 0x20) quoted += c;
    }
    return quoted + "\"";
}

inline int info_command() {
    int device = 0, driver = 0, runtime = 0, major = 0, minor = 0, multiprocessors = 0, shared = 0;
    std::size_t free = 0, total = 0;
    cudaDeviceProp properties{};
    VERIFY_CHECK(cudaGetDevice(&device));
    VERIFY_CHECK(cudaGetDeviceProperties(&properties, device));
    VERIFY_CHECK(cudaDriverGetVersion(&driver));
    VERIFY_CHECK(cudaRuntimeGetVersion(&runtime));
    VERIFY_CHECK(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device));
    VERIFY_CHECK(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device));
    VERIFY_CHECK(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device));
    VERIFY_CHECK(cudaDeviceGetAttribute(&shared, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
    VERIFY_CHECK(cudaMemGetInfo(&free, &total));
    std::printf(
        "{\"name\": %s, \"architecture\": \"sm_%d%d\", \"sm_count\": %d, \"free_bytes\": %zu, \"total_bytes\": %zu, "
        "\"shared_per_block\": %d, \"driver\": \"%d.%d\", \"runtime\": \"%d.%d\"}\n",
        json_text(properties.name).c_str(), major, minor, multiprocessors, free, total, shared, driver / 1000,
        driver % 1000 / 10, runtime / 1000, runtime % 1000 / 10);
    return 0;
}

}  // namespace verify
