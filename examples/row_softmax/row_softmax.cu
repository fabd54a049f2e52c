// Row softmax: one block a row, any number of columns.
#include <cuda_runtime.h>

__device__ float block_reduce(float value, float* scratch, bool maximum) {
    for (int offset = 16; offset > 0; offset /= 2) {
        const float other = __shfl_xor_sync(0xffffffffu, value, offset);
        value = maximum ? fmaxf(value, other) : value + other;
    }
    __syncthreads();  // scratch may still be read from the reduction before
    if (threadIdx.x % 32 == 0) scratch[threadIdx.x / 32] = value;
    __syncthreads();
    value = scratch[0];
    for (int warp = 1; warp < static_cast<int>(blockDim.x / 32); ++warp)
        value = maximum ? fmaxf(value, scratch[warp]) : value + scratch[warp];
    return value;
}

// x and y are [rows, columns] with `pitch` elements from one row to the next; the block is a multiple of 32.
__global__ void row_softmax(const float* x, float* y, int columns, long long pitch) {
    __shared__ float scratch[32];
    const float* row = x + blockIdx.x * pitch;
    float largest = -INFINITY;
    for (int c = threadIdx.x; c < columns; c += blockDim.x) largest = fmaxf(largest, row[c]);
    largest = block_reduce(largest, scratch, true);
    float sum = 0.0f;
    for (int c = threadIdx.x; c < columns; c += blockDim.x) sum += expf(row[c] - largest);
    sum = block_reduce(sum, scratch, false);
    for (int c = threadIdx.x; c < columns; c += blockDim.x)
        y[blockIdx.x * pitch + c] = expf(row[c] - largest) / sum;
}
