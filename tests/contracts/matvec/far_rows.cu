// A row of the FP8 matvec more than 2^31 rows into its weights, scales and results, without the blocks of the rows
// before it: the last block runs alone, told by a shifted block index. Returns 0 where its rows are right.
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>

__device__ unsigned first_block = 0;
__device__ uint3 shifted_block() { return {blockIdx.x + first_block, blockIdx.y, blockIdx.z}; }

static cudaError_t launch_last_block(const void* kernel, dim3 grid, dim3 block, void** arguments, size_t shared,
                                     cudaStream_t stream) {
    const unsigned first = grid.x - 1;
    const cudaError_t error = cudaMemcpyToSymbol(first_block, &first, sizeof first);
    return error != cudaSuccess ? error : cudaLaunchKernel(kernel, dim3(1), block, arguments, shared, stream);
}

#define blockIdx shifted_block()
#define cudaLaunchKernel launch_last_block
#include "fp8_matvec.cu"
#undef cudaLaunchKernel
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
    constexpr int kDepth = 16, kLast = 32;
    constexpr size_t kRows = (size_t{1} << 31) + kLast;
    const std::vector<unsigned char> weights(kDepth * kLast, 0x38);  // E4M3 for 1
    const std::vector<unsigned short> x(kDepth, 0x3f80);             // bf16 for 1
    std::vector<float> scales(kLast), seen(kLast);
    for (int row = 0; row < kLast; ++row) scales[row] = 1.0f + row;
    unsigned char* all_weights;
    unsigned short* vector;
    float *all_scales, *y;
    REQUIRE(cudaMalloc(&all_weights, kRows * kDepth));
    REQUIRE(cudaMalloc(&all_scales, kRows * sizeof(float)));
    REQUIRE(cudaMalloc(&y, kRows * sizeof(float)));
    REQUIRE(cudaMalloc(&vector, sizeof x[0] * kDepth));
    const size_t before = kRows - kLast;
    REQUIRE(cudaMemcpy(all_weights + before * kDepth, weights.data(), weights.size(), cudaMemcpyHostToDevice));
    REQUIRE(cudaMemcpy(all_scales + before, scales.data(), sizeof(float) * kLast, cudaMemcpyHostToDevice));
    REQUIRE(cudaMemcpy(vector, x.data(), sizeof x[0] * kDepth, cudaMemcpyHostToDevice));

    fp8_matvec_args args = {};
    args.weights = all_weights, args.scales = all_scales, args.x = vector, args.y = y;
    args.n = kRows, args.k = args.weight_pitch = args.x_pitch = kDepth, args.y_pitch = kRows, args.b = 1;
    args.output_type = FP8_OUTPUT_F32, args.rows_per_block = kLast;
    REQUIRE(fp8_matvec_launch(&args, nullptr));
    REQUIRE(cudaDeviceSynchronize());
    REQUIRE(cudaMemcpy(seen.data(), y + before, sizeof(float) * kLast, cudaMemcpyDeviceToHost));
    for (int row = 0; row < kLast; ++row)
        if (seen[row] != kDepth * scales[row]) return std::printf("row %d is %g\n", row, seen[row]), 1;
    return 0;
}
