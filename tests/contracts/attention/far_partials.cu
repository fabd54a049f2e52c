// Partials more than 2^31 elements into their workspace, without the blocks that would write the others: each kernel
// runs the blocks of the last batch row alone, told by a shifted block index. Returns 0 where that row is right.
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>

__device__ unsigned first_block = 0;
__device__ uint3 shifted_block() { return {blockIdx.x + first_block, blockIdx.y, blockIdx.z}; }

static unsigned rows = 0;

template <class... Parameters, class... Arguments>
cudaError_t launch_last_row(const cudaLaunchConfig_t* whole, void (*kernel)(Parameters...), Arguments&&... arguments) {
    cudaLaunchConfig_t config = *whole;
    config.gridDim.x = whole->gridDim.x / rows;
    config.numAttrs = 0;
    const unsigned first = whole->gridDim.x - config.gridDim.x;
    const cudaError_t error = cudaMemcpyToSymbol(first_block, &first, sizeof first);
    return error != cudaSuccess ? error : cudaLaunchKernelEx(&config, kernel, arguments...);
}

#define blockIdx shifted_block()
#define cudaLaunchKernelEx launch_last_row
#include "flash_decode.cu"
#undef cudaLaunchKernelEx
#undef blockIdx

#define REQUIRE(call)                                                        \
    do {                                                                     \
        const cudaError_t error = (call);                                    \
        if (error != cudaSuccess) {                                          \
            std::printf("%s: %s\n", #call, cudaGetErrorName(error));         \
            std::exit(5);                                                    \
        }                                                                    \
    } while (0)

int main() {
    constexpr int kDim = 512, kHeads = 16, kSplits = 2, kCapacity = 40;
    rows = (1 << 17) + 1;  // rows * heads * splits * dimensions passes 2^31 in the last row
    const std::vector<__nv_bfloat16> ones(kDim * kCapacity, __float2bfloat16(1.0f));
    const std::vector<int> lengths(rows, kCapacity);
    __nv_bfloat16 *keys, *out;
    int* live;
    void* workspace;
    REQUIRE(cudaMalloc(&keys, sizeof(__nv_bfloat16) * ones.size()));
    REQUIRE(cudaMemcpy(keys, ones.data(), sizeof(__nv_bfloat16) * ones.size(), cudaMemcpyHostToDevice));
    REQUIRE(cudaMalloc(&live, sizeof(int) * rows));
    REQUIRE(cudaMemcpy(live, lengths.data(), sizeof(int) * rows, cudaMemcpyHostToDevice));
    REQUIRE(cudaMalloc(&out, sizeof(__nv_bfloat16) * rows * kHeads * kDim));

    flash_decode_args args = {};
    args.q = args.k = args.v = keys;  // all rows share one, so their strides are 0
    args.out = out, args.lengths = live;
    args.batch = int(rows), args.num_heads = kHeads, args.num_kv_heads = 1, args.head_dim = kDim;
    args.capacity = kCapacity, args.scale = 0.01f, args.num_splits = kSplits;
    args.out_stride_b = kHeads * kDim, args.k_stride_s = args.v_stride_s = kDim;
    flash_decode_plan_result plan;
    REQUIRE(flash_decode_plan(&args, 132, &plan));
    REQUIRE(cudaMalloc(&workspace, plan.workspace_bytes));
    args.workspace = workspace, args.workspace_bytes = plan.workspace_bytes;
    REQUIRE(flash_decode_launch(&args, nullptr));
    REQUIRE(cudaDeviceSynchronize());

    std::vector<__nv_bfloat16> seen(kHeads * kDim);
    REQUIRE(cudaMemcpy(seen.data(), out + size_t(rows - 1) * seen.size(), sizeof(__nv_bfloat16) * seen.size(),
                       cudaMemcpyDeviceToHost));
    for (const __nv_bfloat16 x : seen)
        if (__bfloat162float(x) != 1.0f) return std::printf("a result is %g\n", __bfloat162float(x)), 1;
    return 0;
}
