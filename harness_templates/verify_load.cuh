// Device work beside the entry: a load that keeps another stream busy, and a producer that finishes late.
#pragma once

#include "verify_check.cuh"

namespace verify {

// Bounded by iterations, not by a clock, so that a device without one does the same work.
static __global__ void load_kernel(unsigned* scratch, unsigned mask, int iterations) {
    unsigned at = (blockIdx.x * blockDim.x + threadIdx.x) & mask;
    for (int i = 0; i < iterations; ++i) at = (at * 1664525u + scratch[at] + 1013904223u) & mask;
    if (at == mask + 1) scratch[0] = at;  // never: keeps the loop
}

static __global__ void sleep_kernel(int steps, unsigned nanoseconds) {
    for (int i = 0; i < steps; ++i) __nanosleep(nanoseconds);
}

// A step sleeps up to twice its length, and a millisecond at most: the producer is 4 to 8 ms late.
constexpr int late_steps = 8;
constexpr unsigned late_nanoseconds = 1000000;
constexpr int gather_steps = 2;
constexpr unsigned gather_nanoseconds = 100000;

// A stream of its own with some work on it; `start` adds a varying piece each time.
class Load {
  public:
    Load() {
        VERIFY_CHECK(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
        VERIFY_CHECK(cudaMalloc(reinterpret_cast<void**>(&scratch_), words * sizeof(unsigned)));
        VERIFY_CHECK(cudaMemset(scratch_, 1, words * sizeof(unsigned)));
    }
    Load(const Load&) = delete;
    Load& operator=(const Load&) = delete;
    ~Load() {
        cudaStreamDestroy(stream_);
        cudaFree(scratch_);
    }

    void start(unsigned round) {
        const unsigned blocks = 4u << (round % 5), threads = 32u << (round % 3);
        load_kernel<<<blocks, threads, 0, stream_>>>(scratch_, words - 1, 512);
        VERIFY_CHECK(cudaGetLastError());
    }
    void finish() { VERIFY_CHECK(cudaStreamSynchronize(stream_)); }

  private:
    static constexpr unsigned words = 1u << 20;
    cudaStream_t stream_ = nullptr;
    unsigned* scratch_ = nullptr;
};

}  // namespace verify
