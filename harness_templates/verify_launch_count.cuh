// Counts the kernel launches that the entry asks for, at the runtime's own launch functions.
//
// The harness is linked with --wrap for each of them, so that calls in the production code arrive here first.
// An accepted launch is not yet an executed one: the proof is completed by a stamp kernel behind the entry on
// the same stream, whose value the host reads back after a synchronisation that reports no error.
// Launches through the driver API (cuLaunchKernel) are not seen.
#pragma once

#include <functional>

#include "verify_check.cuh"

namespace verify {

// Two threads may be in the entry at once, so what one of them launches is counted for it alone.
struct LaunchCount {
    bool open = false;  // only the entry's own launches are counted, not the harness's
    std::uint64_t accepted = 0;
    std::uint64_t rejected = 0;
    cudaError_t first_error = cudaSuccess;

    cudaError_t note(cudaError_t status) {
        if (!open) return status;
        if (status == cudaSuccess) {
            ++accepted;
        } else {
            if (rejected++ == 0) first_error = status;
        }
        return status;
    }
};

inline thread_local LaunchCount launches;

// What a mode has a thread do when the entry is about to launch; empty otherwise.
inline thread_local std::function<void()> before_launch;

inline void about_to_launch() {
    if (launches.open && before_launch) before_launch();
}

static __global__ void stamp_kernel(int* where, int value) { *where = value; }

// Returns only when everything on `stream` has run; throws otherwise.
inline void prove_executed(cudaStream_t stream) {
    static int next = 0x5eed;
    const int expected = ++next;
    int* where = nullptr;
    int seen = 0;
    VERIFY_CHECK(cudaMalloc(reinterpret_cast<void**>(&where), sizeof(int)));
    stamp_kernel<<<1, 1, 0, stream>>>(where, expected);
    VERIFY_CHECK(cudaGetLastError());
    VERIFY_CHECK(cudaStreamSynchronize(stream));
    VERIFY_CHECK(cudaDeviceSynchronize());
    VERIFY_CHECK(cudaMemcpy(&seen, where, sizeof(int), cudaMemcpyDeviceToHost));
    VERIFY_CHECK(cudaFree(where));
    if (seen != expected) throw CudaFailure("the device ran nothing: a stamp behind the entry was not written");
}

}  // namespace verify

#define VERIFY_WRAP_LAUNCH(name, parameters, arguments)                       \
    extern "C" cudaError_t __real_##name parameters __attribute__((weak));    \
    extern "C" cudaError_t __wrap_##name parameters {                         \
        ::verify::about_to_launch();                                          \
        return ::verify::launches.note(__real_##name arguments);              \
    }
#define VERIFY_WRAP_LAUNCHES(name, parameters, arguments) \
    VERIFY_WRAP_LAUNCH(name, parameters, arguments)       \
    VERIFY_WRAP_LAUNCH(name##_ptsz, parameters, arguments)

VERIFY_WRAP_LAUNCHES(__cudaLaunchKernel,
                     (void* kernel, dim3 grid, dim3 block, void** args, size_t shared, cudaStream_t stream),
                     (kernel, grid, block, args, shared, stream))
VERIFY_WRAP_LAUNCHES(cudaLaunchKernel,
                     (const void* kernel, dim3 grid, dim3 block, void** args, size_t shared, cudaStream_t stream),
                     (kernel, grid, block, args, shared, stream))
VERIFY_WRAP_LAUNCHES(cudaLaunchKernelExC, (const cudaLaunchConfig_t* config, const void* kernel, void** args),
                     (config, kernel, args))
VERIFY_WRAP_LAUNCHES(cudaLaunchCooperativeKernel,
                     (const void* kernel, dim3 grid, dim3 block, void** args, size_t shared, cudaStream_t stream),
                     (kernel, grid, block, args, shared, stream))
VERIFY_WRAP_LAUNCHES(cudaGraphLaunch, (cudaGraphExec_t graph, cudaStream_t stream), (graph, stream))
