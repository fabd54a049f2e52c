// Reads what an asynchronous copy brings, after the barrier but without the wait.
#include <cuda_pipeline.h>

#include "tripwire.cuh"

__global__ void missing_wait(const float4* in, float4* out) {
    __shared__ float4 tile[128];
    const int i = threadIdx.x;
    __pipeline_memcpy_async(&tile[i], &in[i], sizeof(float4));
    __pipeline_commit();
    __syncthreads();
    out[i] = tile[127 - i];  // fault
    __pipeline_wait_prior(0);
}

static cudaError_t body() {
    constexpr int n = 128;
    float4 *in = nullptr, *out = nullptr;
    cudaMalloc(&in, n * sizeof(float4));
    cudaMalloc(&out, n * sizeof(float4));
    cudaMemset(in, 0, n * sizeof(float4));
    missing_wait<<<1, n>>>(in, out);
    return cudaDeviceSynchronize();
}

int main() { return tripwire(body); }
