// Half of the block goes past a barrier that the other half takes.
#include "tripwire.cuh"

__global__ void divergent_barrier(float* out) {
    __shared__ float tile[64];
    const int i = threadIdx.x;
    tile[i] = float(i);
    if (i % 32 < 16) {
        __syncthreads();  // fault
    }
    out[i] = tile[i];
    __syncthreads();  // so that the other half does not merely leave, which a barrier allows
}

static cudaError_t body() {
    float* out = nullptr;
    cudaMalloc(&out, 64 * sizeof(float));
    divergent_barrier<<<1, 64>>>(out);
    return cudaDeviceSynchronize();
}

int main() { return tripwire(body); }
