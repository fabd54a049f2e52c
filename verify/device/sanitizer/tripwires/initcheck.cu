// Reads elements of global memory that nothing wrote, and discards all but one by a select: the host gets that.
#include "tripwire.cuh"

__global__ void read_unwritten(const float* in, float* out, int written, int n) {
    const int i = threadIdx.x;
    if (i < n) {
        const float value = *(volatile const float*)(in + i);  // fault
        out[i] = i <= written ? value : 0.0f;
    }
}

static cudaError_t body() {
    constexpr int n = 128, written = 64;
    float *in = nullptr, *out = nullptr;
    cudaMalloc(&in, n * sizeof(float));
    cudaMalloc(&out, n * sizeof(float));
    cudaMemset(in, 0, written * sizeof(float));
    read_unwritten<<<1, n>>>(in, out, written, n);
    float host[n];
    return cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost);
}

int main() { return tripwire(body); }
