// Reads a neighbour warp's element of shared memory with no barrier after it was written.
#include "tripwire.cuh"

__global__ void missing_barrier(const float* in, float* out) {
    __shared__ float tile[128];
    const int i = threadIdx.x;
    tile[i] = in[i];
    out[i] = tile[127 - i];  // fault
}

static cudaError_t body() {
    constexpr int n = 128;
    float *in = nullptr, *out = nullptr;
    cudaMalloc(&in, n * sizeof(float));
    cudaMalloc(&out, n * sizeof(float));
    cudaMemset(in, 0, n * sizeof(float));
    missing_barrier<<<1, n>>>(in, out);
    return cudaDeviceSynchronize();
}

int main() { return tripwire(body); }
