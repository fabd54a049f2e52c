// Leaves a pattern in the whole shared memory of every multiprocessor, so that a kernel which reads shared
// memory that it did not write meets it.
#pragma once

#include <algorithm>
#include <vector>

#include "verify_check.cuh"

namespace verify {

// One block takes all of a multiprocessor's shared memory that a block may have, so blocks that run together
// sit on different multiprocessors; each waits a little so that none takes the place of another.
static __global__ void dirty_shared_kernel(const unsigned* table, unsigned patterns, unsigned words, unsigned* seen) {
    extern __shared__ unsigned verify_shared_words[];
    for (unsigned i = threadIdx.x; i < words; i += blockDim.x)
        reinterpret_cast<volatile unsigned*>(verify_shared_words)[i] = table[(i * 2654435761u >> 16) % patterns];
    for (int wait = 0; wait < 8; ++wait) __nanosleep(1000);
    if (threadIdx.x == 0) {
        unsigned multiprocessor;
        asm volatile("mov.u32 %0, %%smid;" : "=r"(multiprocessor));
        seen[multiprocessor] = 1;
    }
}

// Words that are the named fill for fp32, and for a pair of bf16 or f16, as nearly as one word can be.
inline std::vector<unsigned> shared_pattern(const std::string& fill) {
    if (fill == "nan") return {0x7fd57fd5u};
    if (fill == "inf") return {0x7f800000u, 0x7f807f80u};
    if (fill == "huge") return {0x7f7f7f7fu};
    if (fill == "zero") return {0u};
    std::vector<unsigned> plausible;  // "stale": bf16 pairs between 1/4 and 4, of both signs
    for (unsigned i = 0; i < 64; ++i) {
        const unsigned half = 0x3e80u + 8u * i + (i % 3 == 0 ? 0x8000u : 0u);
        plausible.push_back(half << 16 | half);
    }
    return plausible;
}

// Returns on how many multiprocessors it was.
inline unsigned dirty_shared(const std::string& fill, cudaStream_t stream) {
    int device = 0, multiprocessors = 0, bytes = 0;
    VERIFY_CHECK(cudaGetDevice(&device));
    VERIFY_CHECK(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device));
    VERIFY_CHECK(cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
    VERIFY_CHECK(cudaFuncSetAttribute(dirty_shared_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));

    const std::vector<unsigned> table = shared_pattern(fill);
    // %smid may pass the multiprocessor count on parts with disabled units, hence the room behind it.
    const std::size_t slots = static_cast<std::size_t>(multiprocessors) + 1024;
    unsigned *device_table = nullptr, *seen = nullptr;
    VERIFY_CHECK(cudaMalloc(reinterpret_cast<void**>(&device_table), table.size() * sizeof(unsigned)));
    VERIFY_CHECK(cudaMalloc(reinterpret_cast<void**>(&seen), slots * sizeof(unsigned)));
    VERIFY_CHECK(cudaMemcpy(device_table, table.data(), table.size() * sizeof(unsigned), cudaMemcpyHostToDevice));
    VERIFY_CHECK(cudaMemset(seen, 0, slots * sizeof(unsigned)));
    VERIFY_CHECK(cudaDeviceSynchronize());
    dirty_shared_kernel<<<multiprocessors, 256, bytes, stream>>>(device_table, static_cast<unsigned>(table.size()),
                                                                 static_cast<unsigned>(bytes / 4), seen);
    VERIFY_CHECK(cudaGetLastError());
    VERIFY_CHECK(cudaStreamSynchronize(stream));
    std::vector<unsigned> flags(slots);
    VERIFY_CHECK(cudaMemcpy(flags.data(), seen, slots * sizeof(unsigned), cudaMemcpyDeviceToHost));
    VERIFY_CHECK(cudaFree(seen));
    VERIFY_CHECK(cudaFree(device_table));
    return static_cast<unsigned>(std::count(flags.begin(), flags.end(), 1u));
}

}  // namespace verify
