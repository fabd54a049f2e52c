// Reads shared memory that a predicated copy left unwritten; the host gets what was read.
#include "tripwire.cuh"

__global__ void read_unstaged(const float* in, float* out, int staged) {
    __shared__ float tile[128];
    const int i = threadIdx.x;
    if (i < staged) {
        tile[i] = in[i];
    }
    __syncthreads();
    out[i] = tile[127 - i];  // fault
}

static cudaError_t body() {
    constexpr int n = 128, staged = 64;
    float *in = nullptr, *out = nullptr;
    cudaMalloc(&in, n * sizeof(float));
    cudaMalloc(&out, n * sizeof(float));
    cudaMemset(in, 0, n * sizeof(float));
    read_unstaged<<<1, n>>>(in, out, staged);
    float host[n];
    return cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost);
}

int main() { return tripwire(body); }
