// Reads one element past its allocation; the next allocation follows at once unless the tool pads.
#include "tripwire.cuh"

__global__ void read_past_the_end(const float* in, float* out, int n) {
    const int i = threadIdx.x;
    if (i <= n) {
        out[i] = in[i];  // fault
    }
}

static cudaError_t body() {
    constexpr int n = 128;
    float *in = nullptr, *out = nullptr;
    cudaMalloc(&in, n * sizeof(float));
    cudaMalloc(&out, (n + 1) * sizeof(float));
    cudaMemset(in, 0, n * sizeof(float));
    read_past_the_end<<<1, 256>>>(in, out, n);
    return cudaDeviceSynchronize();
}

int main() { return tripwire(body); }
