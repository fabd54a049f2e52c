// Fails the n-th runtime call of a launcher (preloaded, LD_PRELOAD). The harness opens a window around the entry;
// calls inside it are counted, and the chosen one returns an error instead of being made. Outside the window,
// and for calls that are not chosen, everything goes to the runtime, the real one or the CPU device's.
//
// A failed call leaves the same trace as a real one: cudaGetLastError returns its error once and
// cudaPeekAtLastError until then, since a launch by <<<>>> has no other way to tell. Both are calls that can be
// chosen themselves. Calls of the driver API (cu...) and of the launch configuration stack are not seen.
#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>

namespace {

std::atomic<bool> window{false};
std::atomic<long> calls{0};
std::atomic<long> chosen{0};
std::atomic<const char*> failed{"-"};
thread_local cudaError_t pending = cudaSuccess;

// True when this call is the one to fail.
bool fails(const char* name) {
    if (!window || calls.fetch_add(1) + 1 != chosen) return false;
    failed = name;
    return true;
}

template <class Function>
Function* next(const char* name) {
    void* found = dlsym(RTLD_NEXT, name);
    if (found == nullptr) {
        std::fprintf(stderr, "launch_fault_interposer: the runtime has no %s\n", name);
        std::abort();
    }
    return reinterpret_cast<Function*>(found);
}

}  // namespace

extern "C" void verify_fault_window_open(long fail_call) {
    calls = 0;
    chosen = fail_call;
    failed = "-";
    pending = cudaSuccess;
    window = true;
}
extern "C" long verify_fault_window_close() {
    window = false;
    pending = cudaSuccess;
    return calls;
}
extern "C" const char* verify_fault_window_failed() { return failed; }

#define FAILS_WITH(error, name, parameters, arguments)                         \
    extern "C" cudaError_t CUDARTAPI name parameters {                         \
        static auto* const real = next<cudaError_t parameters>(#name);        \
        return fails(#name) ? (pending = error) : real arguments;             \
    }

// The runtime's own record of the last error.
extern "C" cudaError_t CUDARTAPI cudaGetLastError() {
    static auto* const real = next<cudaError_t()>("cudaGetLastError");
    const cudaError_t recorded = real();
    if (fails("cudaGetLastError")) return cudaErrorLaunchFailure;
    const cudaError_t injected = pending;
    pending = cudaSuccess;
    return injected != cudaSuccess ? injected : recorded;
}
extern "C" cudaError_t CUDARTAPI cudaPeekAtLastError() {
    static auto* const real = next<cudaError_t()>("cudaPeekAtLastError");
    if (fails("cudaPeekAtLastError")) return pending = cudaErrorLaunchFailure;
    return pending != cudaSuccess ? pending : real();
}

// Launches.
#define LAUNCH(name, kernel_type)                                                                             \
    extern "C" cudaError_t CUDARTAPI name(kernel_type, dim3, dim3, void**, size_t, cudaStream_t);             \
    FAILS_WITH(cudaErrorLaunchOutOfResources, name,                                                           \
               (kernel_type kernel, dim3 grid, dim3 block, void** args, size_t shared, cudaStream_t stream),  \
               (kernel, grid, block, args, shared, stream))
#define LAUNCH_EX(name)                                                                                       \
    extern "C" cudaError_t CUDARTAPI name(const cudaLaunchConfig_t*, const void*, void**);                    \
    FAILS_WITH(cudaErrorLaunchOutOfResources, name,                                                           \
               (const cudaLaunchConfig_t* config, const void* kernel, void** args), (config, kernel, args))
LAUNCH(__cudaLaunchKernel, cudaKernel_t)
LAUNCH(__cudaLaunchKernel_ptsz, cudaKernel_t)
LAUNCH(cudaLaunchKernel, const void*)
LAUNCH(cudaLaunchKernel_ptsz, const void*)
LAUNCH(cudaLaunchCooperativeKernel, const void*)
LAUNCH(cudaLaunchCooperativeKernel_ptsz, const void*)
LAUNCH_EX(cudaLaunchKernelExC)
LAUNCH_EX(cudaLaunchKernelExC_ptsz)
FAILS_WITH(cudaErrorLaunchFailure, cudaLaunchHostFunc, (cudaStream_t stream, cudaHostFn_t function, void* data),
           (stream, function, data))
FAILS_WITH(cudaErrorLaunchFailure, cudaGraphLaunch, (cudaGraphExec_t graph, cudaStream_t stream), (graph, stream))

// Functions and their attributes.
FAILS_WITH(cudaErrorInvalidValue, cudaFuncSetAttribute, (const void* function, cudaFuncAttribute what, int value),
           (function, what, value))
FAILS_WITH(cudaErrorInvalidDeviceFunction, cudaFuncGetAttributes, (cudaFuncAttributes * attributes, const void* function),
           (attributes, function))
FAILS_WITH(cudaErrorInvalidValue, cudaFuncSetCacheConfig, (const void* function, cudaFuncCache config),
           (function, config))
FAILS_WITH(cudaErrorInvalidDeviceFunction, cudaOccupancyMaxActiveBlocksPerMultiprocessor,
           (int* blocks, const void* function, int threads, size_t shared), (blocks, function, threads, shared))
FAILS_WITH(cudaErrorInvalidDeviceFunction, cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags,
           (int* blocks, const void* function, int threads, size_t shared, unsigned flags),
           (blocks, function, threads, shared, flags))
FAILS_WITH(cudaErrorInvalidDeviceFunction, cudaOccupancyAvailableDynamicSMemPerBlock,
           (size_t* bytes, const void* function, int blocks, int threads), (bytes, function, blocks, threads))
FAILS_WITH(cudaErrorInvalidDeviceFunction, cudaOccupancyMaxActiveClusters,
           (int* clusters, const void* function, const cudaLaunchConfig_t* config), (clusters, function, config))
FAILS_WITH(cudaErrorInvalidDeviceFunction, cudaOccupancyMaxPotentialClusterSize,
           (int* size, const void* function, const cudaLaunchConfig_t* config), (size, function, config))

// Devices.
FAILS_WITH(cudaErrorNoDevice, cudaGetDevice, (int* device), (device))
FAILS_WITH(cudaErrorNoDevice, cudaGetDeviceCount, (int* count), (count))
FAILS_WITH(cudaErrorInvalidDevice, cudaSetDevice, (int device), (device))
FAILS_WITH(cudaErrorInvalidDevice, cudaDeviceGetAttribute, (int* value, cudaDeviceAttr attribute, int device),
           (value, attribute, device))
FAILS_WITH(cudaErrorInvalidDevice, cudaGetDeviceProperties, (cudaDeviceProp * properties, int device),
           (properties, device))
FAILS_WITH(cudaErrorInvalidValue, cudaDeviceGetLimit, (size_t* value, cudaLimit limit), (value, limit))
FAILS_WITH(cudaErrorInvalidValue, cudaDeviceSetLimit, (cudaLimit limit, size_t value), (limit, value))
FAILS_WITH(cudaErrorLaunchFailure, cudaDeviceSynchronize, (), ())
FAILS_WITH(cudaErrorInvalidValue, cudaDriverGetVersion, (int* version), (version))
FAILS_WITH(cudaErrorInvalidValue, cudaRuntimeGetVersion, (int* version), (version))
FAILS_WITH(cudaErrorInvalidValue, cudaDeviceGetDefaultMemPool, (cudaMemPool_t * pool, int device), (pool, device))
FAILS_WITH(cudaErrorSymbolNotFound, cudaGetDriverEntryPointByVersion,
           (const char* symbol, void** function, unsigned version, unsigned long long flags,
            cudaDriverEntryPointQueryResult* status),
           (symbol, function, version, flags, status))

// Memory.
FAILS_WITH(cudaErrorMemoryAllocation, cudaMalloc, (void** pointer, size_t bytes), (pointer, bytes))
FAILS_WITH(cudaErrorMemoryAllocation, cudaMallocAsync, (void** pointer, size_t bytes, cudaStream_t stream),
           (pointer, bytes, stream))
FAILS_WITH(cudaErrorMemoryAllocation, cudaMallocHost, (void** pointer, size_t bytes), (pointer, bytes))
FAILS_WITH(cudaErrorMemoryAllocation, cudaHostAlloc, (void** pointer, size_t bytes, unsigned flags),
           (pointer, bytes, flags))
FAILS_WITH(cudaErrorMemoryAllocation, cudaMallocManaged, (void** pointer, size_t bytes, unsigned flags),
           (pointer, bytes, flags))
FAILS_WITH(cudaErrorInvalidValue, cudaFree, (void* pointer), (pointer))
FAILS_WITH(cudaErrorInvalidValue, cudaFreeAsync, (void* pointer, cudaStream_t stream), (pointer, stream))
FAILS_WITH(cudaErrorInvalidValue, cudaFreeHost, (void* pointer), (pointer))
FAILS_WITH(cudaErrorInvalidValue, cudaMemGetInfo, (size_t* free, size_t* total), (free, total))
FAILS_WITH(cudaErrorInvalidValue, cudaPointerGetAttributes, (cudaPointerAttributes * attributes, const void* pointer),
           (attributes, pointer))
FAILS_WITH(cudaErrorInvalidValue, cudaMemset, (void* to, int value, size_t bytes), (to, value, bytes))
FAILS_WITH(cudaErrorInvalidValue, cudaMemsetAsync, (void* to, int value, size_t bytes, cudaStream_t stream),
           (to, value, bytes, stream))
FAILS_WITH(cudaErrorInvalidValue, cudaMemset2DAsync,
           (void* to, size_t pitch, int value, size_t width, size_t height, cudaStream_t stream),
           (to, pitch, value, width, height, stream))
FAILS_WITH(cudaErrorInvalidValue, cudaMemcpy, (void* to, const void* from, size_t bytes, cudaMemcpyKind kind),
           (to, from, bytes, kind))
FAILS_WITH(cudaErrorInvalidValue, cudaMemcpyAsync,
           (void* to, const void* from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream),
           (to, from, bytes, kind, stream))
FAILS_WITH(cudaErrorInvalidValue, cudaMemcpy2DAsync,
           (void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width, size_t height,
            cudaMemcpyKind kind, cudaStream_t stream),
           (to, to_pitch, from, from_pitch, width, height, kind, stream))
FAILS_WITH(cudaErrorInvalidSymbol, cudaMemcpyToSymbol,
           (const void* symbol, const void* from, size_t bytes, size_t offset, cudaMemcpyKind kind),
           (symbol, from, bytes, offset, kind))
FAILS_WITH(cudaErrorInvalidSymbol, cudaMemcpyToSymbolAsync,
           (const void* symbol, const void* from, size_t bytes, size_t offset, cudaMemcpyKind kind, cudaStream_t stream),
           (symbol, from, bytes, offset, kind, stream))
FAILS_WITH(cudaErrorInvalidSymbol, cudaMemcpyFromSymbol,
           (void* to, const void* symbol, size_t bytes, size_t offset, cudaMemcpyKind kind),
           (to, symbol, bytes, offset, kind))
FAILS_WITH(cudaErrorInvalidSymbol, cudaGetSymbolAddress, (void** pointer, const void* symbol), (pointer, symbol))
FAILS_WITH(cudaErrorInvalidSymbol, cudaGetSymbolSize, (size_t* bytes, const void* symbol), (bytes, symbol))

// Streams, events and graphs.
FAILS_WITH(cudaErrorInvalidValue, cudaStreamCreate, (cudaStream_t * stream), (stream))
FAILS_WITH(cudaErrorInvalidValue, cudaStreamCreateWithFlags, (cudaStream_t * stream, unsigned flags), (stream, flags))
FAILS_WITH(cudaErrorInvalidValue, cudaStreamCreateWithPriority, (cudaStream_t * stream, unsigned flags, int priority),
           (stream, flags, priority))
FAILS_WITH(cudaErrorInvalidValue, cudaStreamDestroy, (cudaStream_t stream), (stream))
FAILS_WITH(cudaErrorLaunchFailure, cudaStreamSynchronize, (cudaStream_t stream), (stream))
FAILS_WITH(cudaErrorInvalidValue, cudaStreamWaitEvent, (cudaStream_t stream, cudaEvent_t event, unsigned flags),
           (stream, event, flags))
FAILS_WITH(cudaErrorLaunchFailure, cudaStreamQuery, (cudaStream_t stream), (stream))
FAILS_WITH(cudaErrorInvalidValue, cudaStreamGetDevice, (cudaStream_t stream, int* device), (stream, device))
FAILS_WITH(cudaErrorInvalidValue, cudaStreamIsCapturing, (cudaStream_t stream, cudaStreamCaptureStatus* status),
           (stream, status))
FAILS_WITH(cudaErrorInvalidValue, cudaStreamBeginCapture, (cudaStream_t stream, cudaStreamCaptureMode mode),
           (stream, mode))
FAILS_WITH(cudaErrorInvalidValue, cudaStreamEndCapture, (cudaStream_t stream, cudaGraph_t* graph), (stream, graph))
FAILS_WITH(cudaErrorInvalidValue, cudaEventCreate, (cudaEvent_t * event), (event))
FAILS_WITH(cudaErrorInvalidValue, cudaEventCreateWithFlags, (cudaEvent_t * event, unsigned flags), (event, flags))
FAILS_WITH(cudaErrorInvalidValue, cudaEventDestroy, (cudaEvent_t event), (event))
FAILS_WITH(cudaErrorInvalidValue, cudaEventRecord, (cudaEvent_t event, cudaStream_t stream), (event, stream))
FAILS_WITH(cudaErrorLaunchFailure, cudaEventSynchronize, (cudaEvent_t event), (event))
FAILS_WITH(cudaErrorLaunchFailure, cudaEventQuery, (cudaEvent_t event), (event))
FAILS_WITH(cudaErrorMemoryAllocation, cudaGraphInstantiate,
           (cudaGraphExec_t * executable, cudaGraph_t graph, unsigned long long flags), (executable, graph, flags))
FAILS_WITH(cudaErrorInvalidValue, cudaGraphDestroy, (cudaGraph_t graph), (graph))
FAILS_WITH(cudaErrorInvalidValue, cudaGraphExecDestroy, (cudaGraphExec_t executable), (executable))
