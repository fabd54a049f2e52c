// What one architecture allows: the figures behind device properties, launch checks and occupancy.
//
// Source: the compute-capability tables of the CUDA C++ Programming Guide; multiprocessor count, caches, memory and
// clocks are those of an A100 80 GB for sm_80 and of an H200 for sm_90.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace machine::runtime {

struct Limits {
  unsigned architecture;
  const char* name;
  int multiprocessors;
  int threads_per_multiprocessor;
  int blocks_per_multiprocessor;
  int registers_per_multiprocessor;
  std::size_t shared_per_multiprocessor;
  std::size_t shared_per_block;        // without opting in
  std::size_t shared_per_block_optin;  // with cudaFuncAttributeMaxDynamicSharedMemorySize
  std::size_t shared_reserved;         // kept by the system from each block's share
  std::size_t shared_granularity;      // shared memory is handed out in units of this many bytes
  std::array<unsigned, 9> carveouts;   // KB of shared memory that a multiprocessor can be set to, ascending
  std::uint64_t global_memory;
  int l2_bytes;
  int persisting_l2_bytes;
  int clock_khz;
  int memory_clock_khz;
  int memory_bus_bits;
  bool clusters;
};

inline constexpr int kMaxThreadsPerBlock = 1024;
inline constexpr unsigned kMaxBlock[3] = {1024, 1024, 64};
inline constexpr unsigned kMaxGrid[3] = {0x7fffffff, 65535, 65535};
inline constexpr int kRegistersPerThread = 255;
inline constexpr std::size_t kParameterBytes = 32764;
inline constexpr std::size_t kConstantBytes = 65536;

// The device of this process, from options().architecture.
const Limits& limits();

}  // namespace machine::runtime
