#include "runtime/limits.hpp"

#include "runtime/options.hpp"

namespace machine::runtime {
namespace {

constexpr Limits sm_80{.architecture = 80,
                       .name = "CPU device sm_80",
                       .multiprocessors = 108,
                       .threads_per_multiprocessor = 2048,
                       .blocks_per_multiprocessor = 32,
                       .registers_per_multiprocessor = 65536,
                       .shared_per_multiprocessor = 167936,
                       .shared_per_block = 49152,
                       .shared_per_block_optin = 166912,
                       .shared_reserved = 1024,
                       .shared_granularity = 128,
                       .carveouts = {8, 16, 32, 64, 100, 132, 164, 164, 164},
                       .global_memory = std::uint64_t{80} << 30,
                       .l2_bytes = 40 << 20,
                       .persisting_l2_bytes = 25 << 20,
                       .clock_khz = 1410000,
                       .memory_clock_khz = 1593000,
                       .memory_bus_bits = 5120,
                       .clusters = false};

constexpr Limits sm_90{.architecture = 90,
                       .name = "CPU device sm_90",
                       .multiprocessors = 132,
                       .threads_per_multiprocessor = 2048,
                       .blocks_per_multiprocessor = 32,
                       .registers_per_multiprocessor = 65536,
                       .shared_per_multiprocessor = 233472,
                       .shared_per_block = 49152,
                       .shared_per_block_optin = 232448,
                       .shared_reserved = 1024,
                       .shared_granularity = 128,
                       .carveouts = {8, 16, 32, 64, 100, 132, 164, 196, 228},
                       .global_memory = std::uint64_t{140} << 30,
                       .l2_bytes = 60 << 20,
                       .persisting_l2_bytes = 37 << 20,
                       .clock_khz = 1980000,
                       .memory_clock_khz = 3201000,
                       .memory_bus_bits = 6144,
                       .clusters = true};

}  // namespace

const Limits& limits() {
  static const Limits chosen = [] {
    Limits limits = options().architecture == 80 ? sm_80 : sm_90;
    if (options().memory) limits.global_memory = options().memory;
    return limits;
  }();
  return chosen;
}

}  // namespace machine::runtime
