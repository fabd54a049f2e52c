// Byte ranges of one device buffer, written or read all at once.
//
// Few ranges are copied one by one. Many go through a packed copy and one kernel: a call a range would cost
// thousands of calls, and a tool that looks at the whole allocation on each of them (initcheck does) would take
// minutes over a buffer of gigabytes.
#pragma once

#include <cstring>
#include <vector>

#include "verify_case_file.hpp"
#include "verify_check.cuh"

namespace verify {

constexpr std::size_t most_single_copies = 8;

// A copy of pageable memory may return before its bytes have arrived, and a kernel on a stream that does not wait for
// the default one could run ahead of them.
inline void copy_to_device(void* to, const void* from, std::size_t bytes) {
    VERIFY_CHECK(cudaMemcpy(to, from, bytes, cudaMemcpyHostToDevice));
    VERIFY_CHECK(cudaStreamSynchronize(nullptr));
}

struct PackedSegment {
    ByteRun run;             // in the buffer
    std::uint64_t position;  // in the packed copy; as far from a 16-byte boundary as the run is
};

static __global__ void move_segments(unsigned char* buffer, unsigned char* packed, const PackedSegment* segments,
                                     bool to_buffer) {
    const PackedSegment segment = segments[blockIdx.x];
    unsigned char* there = buffer + segment.run.offset;
    unsigned char* here = packed + segment.position;
    unsigned char* to = to_buffer ? there : here;
    const unsigned char* from = to_buffer ? here : there;
    const bool wide = ((reinterpret_cast<std::uintptr_t>(to) | reinterpret_cast<std::uintptr_t>(from) |
                        segment.run.length) % sizeof(uint4)) == 0;
    if (wide) {
        for (std::uint64_t i = threadIdx.x; i < segment.run.length / sizeof(uint4); i += blockDim.x)
            reinterpret_cast<uint4*>(to)[i] = reinterpret_cast<const uint4*>(from)[i];
    } else {
        for (std::uint64_t i = threadIdx.x; i < segment.run.length; i += blockDim.x) to[i] = from[i];
    }
}

// The packed device copy of a list of ranges, for the life of one transfer.
class PackedCopy {
  public:
    PackedCopy(void* buffer, const std::vector<ByteRun>& runs) : buffer_(static_cast<unsigned char*>(buffer)) {
        for (const ByteRun& run : runs) {
            if (run.length == 0) continue;
            const std::uint64_t skew = reinterpret_cast<std::uintptr_t>(buffer_ + run.offset) % sizeof(uint4);
            size_ = (size_ + sizeof(uint4) - 1) / sizeof(uint4) * sizeof(uint4) + skew;
            segments_.push_back({run, size_});
            size_ += run.length;
        }
        if (segments_.empty()) return;
        VERIFY_CHECK(cudaMalloc(&packed_, size_));
        VERIFY_CHECK(cudaMalloc(&table_, segments_.size() * sizeof(PackedSegment)));
        copy_to_device(table_, segments_.data(), segments_.size() * sizeof(PackedSegment));
    }
    PackedCopy(const PackedCopy&) = delete;
    PackedCopy& operator=(const PackedCopy&) = delete;
    ~PackedCopy() {
        cudaFree(packed_);
        cudaFree(table_);
    }

    // Puts the bytes into the packed copy; `store` then writes them into the buffer, in stream order.
    void stage(const std::uint8_t* bytes) {
        if (segments_.empty()) return;
        std::vector<std::uint8_t> staged(size_);
        for (const PackedSegment& segment : segments_) {
            std::memcpy(staged.data() + segment.position, bytes, segment.run.length);
            bytes += segment.run.length;
        }
        copy_to_device(packed_, staged.data(), size_);
    }

    void store(cudaStream_t stream) { move(true, stream); }

    void read(std::uint8_t* bytes) {
        if (segments_.empty()) return;
        // The gaps between ranges are read back too, so they must hold something.
        VERIFY_CHECK(cudaMemset(packed_, 0, size_));
        move(false, nullptr);
        VERIFY_CHECK(cudaDeviceSynchronize());
        std::vector<std::uint8_t> staged(size_);
        VERIFY_CHECK(cudaMemcpy(staged.data(), packed_, size_, cudaMemcpyDeviceToHost));
        for (const PackedSegment& segment : segments_) {
            std::memcpy(bytes, staged.data() + segment.position, segment.run.length);
            bytes += segment.run.length;
        }
    }

  private:
    void move(bool to_buffer, cudaStream_t stream) {
        if (segments_.empty()) return;
        const auto blocks = static_cast<unsigned>(segments_.size());
        move_segments<<<blocks, 256, 0, stream>>>(buffer_, packed_, table_, to_buffer);
        VERIFY_CHECK(cudaGetLastError());
    }

    unsigned char* buffer_;
    std::vector<PackedSegment> segments_;
    std::uint64_t size_ = 0;
    unsigned char* packed_ = nullptr;
    PackedSegment* table_ = nullptr;
};

// Writes the ranges of `buffer`; `bytes` holds them one after the other.
inline void write_segments(void* buffer, const std::vector<ByteRun>& runs, const std::uint8_t* bytes) {
    if (runs.size() > most_single_copies) {
        PackedCopy copy(buffer, runs);
        copy.stage(bytes);
        copy.store(nullptr);
        VERIFY_CHECK(cudaDeviceSynchronize());
        return;
    }
    for (const ByteRun& run : runs) {
        copy_to_device(static_cast<char*>(buffer) + run.offset, bytes, run.length);
        bytes += run.length;
    }
}

// Reads the ranges of `buffer`, one after the other, into `bytes`.
inline void read_segments(const void* buffer, const std::vector<ByteRun>& runs, std::uint8_t* bytes) {
    if (runs.size() > most_single_copies) return PackedCopy(const_cast<void*>(buffer), runs).read(bytes);
    for (const ByteRun& run : runs) {
        if (run.length == 0) continue;
        VERIFY_CHECK(cudaMemcpy(bytes, static_cast<const char*>(buffer) + run.offset, run.length,
                                cudaMemcpyDeviceToHost));
        bytes += run.length;
    }
}

}  // namespace verify
