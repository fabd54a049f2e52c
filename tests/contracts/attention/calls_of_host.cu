// What the header of flash_decode.cu promises to its callers beside the numbers: a launch on a second device, calls of
// two host threads at once, and no device memory kept. Prints one line and returns 0 where it holds.
//   devices    a launch on each of two devices; those of a machine with one are pretended
//   threads    two host threads, each with a stream and buffers of its own, 20 calls each
//   memory     device memory after 100 calls, against after the first
#include <cstdio>
#include <cstring>
#include <thread>
#include <vector>

#include <cuda_runtime.h>

// One device stands for two: which one is current, and for which of them a kernel was allowed its shared memory.
static bool pretended = false;
static int current = 0;
static bool allowed[2] = {};

template <class Kernel>
cudaError_t set_attribute(Kernel* kernel, cudaFuncAttribute attribute, int value) {
    allowed[current] = true;
    return cudaFuncSetAttribute(kernel, attribute, value);
}
static cudaError_t get_device(int* device) {
    const cudaError_t error = cudaGetDevice(device);
    if (pretended) *device = current;
    return error;
}
static cudaError_t device_attribute(int* value, cudaDeviceAttr attribute, int device) {
    return cudaDeviceGetAttribute(value, attribute, pretended ? 0 : device);
}
static cudaError_t set_device(int device) {
    current = device;
    return pretended ? cudaSuccess : cudaSetDevice(device);
}

#define cudaFuncSetAttribute set_attribute
#define cudaGetDevice get_device
#define cudaDeviceGetAttribute device_attribute
#include "flash_decode.cu"
#undef cudaFuncSetAttribute
#undef cudaGetDevice
#undef cudaDeviceGetAttribute

#define REQUIRE(call)                                                              \
    do {                                                                           \
        const cudaError_t error = (call);                                          \
        if (error != cudaSuccess) {                                                \
            std::printf("%s: %s\n", #call, cudaGetErrorName(error));               \
            std::exit(5);                                                          \
        }                                                                          \
    } while (0)

// One head of 512 dimensions over 70 positions in three splits; every value is 1, and so is every result.
struct Call {
    static constexpr int kDim = 512, kCapacity = 70;
    __nv_bfloat16 *q, *k, *v, *out;
    int* length;
    void* workspace;
    cudaStream_t stream;
    flash_decode_args args = {};

    Call() {
        const std::vector<__nv_bfloat16> ones(kDim * kCapacity, __float2bfloat16(1.0f));
        const int live = kCapacity;
        REQUIRE(cudaStreamCreate(&stream));
        for (__nv_bfloat16** buffer : {&q, &k, &v, &out}) {
            const size_t bytes = sizeof(__nv_bfloat16) * (buffer == &q || buffer == &out ? kDim : ones.size());
            REQUIRE(cudaMalloc(buffer, bytes));
            REQUIRE(cudaMemcpy(*buffer, ones.data(), bytes, cudaMemcpyHostToDevice));
        }
        REQUIRE(cudaMalloc(&length, sizeof(int)));
        REQUIRE(cudaMemcpy(length, &live, sizeof(int), cudaMemcpyHostToDevice));
        args.q = q, args.k = k, args.v = v, args.out = out, args.lengths = length;
        args.batch = args.num_heads = args.num_kv_heads = 1;
        args.head_dim = kDim, args.capacity = kCapacity, args.scale = 0.01f, args.num_splits = 3;
        args.q_stride_b = args.out_stride_b = args.k_stride_s = args.v_stride_s = kDim;
        args.k_stride_b = args.k_stride_h = args.v_stride_b = args.v_stride_h = kDim * kCapacity;
        flash_decode_plan_result plan;
        REQUIRE(flash_decode_plan(&args, 132, &plan));
        REQUIRE(cudaMalloc(&workspace, plan.workspace_bytes));
        args.workspace = workspace, args.workspace_bytes = plan.workspace_bytes;
    }
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;
    ~Call() {
        for (void* buffer : {(void*)q, (void*)k, (void*)v, (void*)out, (void*)length, workspace}) cudaFree(buffer);
        cudaStreamDestroy(stream);
    }

    bool right() {
        std::vector<__nv_bfloat16> seen(kDim);
        REQUIRE(cudaMemsetAsync(out, 0, sizeof(__nv_bfloat16) * kDim, stream));
        const cudaError_t error = flash_decode_launch(&args, stream);
        if (error != cudaSuccess) return std::printf("launch: %s\n", cudaGetErrorName(error)), false;
        REQUIRE(cudaMemcpyAsync(seen.data(), out, sizeof(__nv_bfloat16) * kDim, cudaMemcpyDeviceToHost, stream));
        REQUIRE(cudaStreamSynchronize(stream));
        for (const __nv_bfloat16 x : seen)
            if (__bfloat162float(x) != 1.0f) return std::printf("a result is %g\n", __bfloat162float(x)), false;
        return true;
    }
};

static bool on_two_devices() {
    int count = 0;
    REQUIRE(cudaGetDeviceCount(&count));
    pretended = count < 2;
    for (int device = 0; device < 2; ++device) {
        REQUIRE(set_device(device));
        Call call;
        if (!call.right()) return false;
        if (!allowed[device]) return std::printf("device %d was not asked for its shared memory\n", device), false;
    }
    std::printf("%s devices\n", pretended ? "pretended" : "real");
    return true;
}

static bool from_two_threads() {
    Call first, second;
    bool right[2] = {true, true};
    std::thread other([&] {
        for (int i = 0; i < 20 && right[1]; ++i) right[1] = second.right();
    });
    for (int i = 0; i < 20 && right[0]; ++i) right[0] = first.right();
    other.join();
    return right[0] && right[1];
}

static bool keeps_no_memory() {
    Call call;
    size_t free = 0, left = 0, total = 0;
    if (!call.right()) return false;
    REQUIRE(cudaMemGetInfo(&free, &total));
    for (int i = 0; i < 99; ++i)
        if (!call.right()) return false;
    REQUIRE(cudaMemGetInfo(&left, &total));
    if (left < free) return std::printf("%zu bytes are kept\n", free - left), false;
    return true;
}

int main(int, char** words) {
    const bool good = std::strcmp(words[1], "devices") == 0   ? on_two_devices()
                      : std::strcmp(words[1], "threads") == 0 ? from_two_threads()
                                                              : keeps_no_memory();
    return good ? 0 : 1;
}
