#include "runtime/occupancy.hpp"

#include <algorithm>
#include <map>

#include "runtime/api.hpp"
#include "runtime/cubin.hpp"
#include "runtime/limits.hpp"
#include "runtime/options.hpp"

namespace machine::runtime {
namespace {

// Registers are handed to a warp in units of 256: 8 a thread.
constexpr unsigned kRegisterUnit = 8;
constexpr unsigned kGuessedRegisters = 32;  // the most that does not limit occupancy

const std::map<std::string, unsigned>& register_counts(const Program& program) {
  static auto& known = *new std::map<const Program*, std::map<std::string, unsigned>>;  // outlives static destructors
  auto found = known.find(&program);
  if (found != known.end()) return found->second;
  auto& counts = known[&program];
  for (const auto& entry : program.binary.machine_code)
    if (entry.architecture == limits().architecture) try {
        counts.merge(registers_in_cubin(unpacked(entry.elf, options().unpacked)));
      } catch (const BrokenFatBinary&) {
        // Without it the count is guessed; the PTX decides whether the program runs.
      }
  return counts;
}

std::size_t rounded_up(std::size_t value, std::size_t unit) { return (value + unit - 1) / unit * unit; }

// Shared memory of a multiprocessor that runs the kernel: the least setting that has the preferred part, and a block's.
std::size_t shared_setting(const CUkern_st& kernel, std::size_t of_block) {
  const std::size_t all = limits().shared_per_multiprocessor;
  if (kernel.carveout < 0) return all;
  for (const std::size_t kilobytes : limits().carveouts)
    if (kilobytes * 1024 >= of_block && kilobytes * 1024 * 100 >= all * static_cast<std::size_t>(kernel.carveout))
      return kilobytes * 1024;
  return all;
}

}  // namespace

unsigned registers_of(const CUkern_st& kernel) {
  const auto& counts = register_counts(*kernel.program);
  if (auto found = counts.find(kernel.name); found != counts.end()) return found->second;
  const unsigned threads = kernel.resolved ? kernel.resolved->attributes().max_threads : kMaxThreadsPerBlock;
  const unsigned fit = limits().registers_per_multiprocessor / static_cast<int>(std::max(threads, 1u));
  return std::min({kGuessedRegisters, fit, static_cast<unsigned>(kRegistersPerThread)});
}

int blocks_per_multiprocessor(CUkern_st& kernel, std::size_t threads, std::size_t dynamic_shared) {
  const Limits& device = limits();
  const auto& attributes = kernel.kernel().attributes();
  if (threads == 0 || threads > kMaxThreadsPerBlock) return 0;  // launch bounds do not count here
  const std::size_t shared = attributes.static_shared + dynamic_shared;
  if (shared > device.shared_per_block_optin || dynamic_shared > kernel.dynamic_shared_limit()) return 0;
  const std::size_t warps = (threads + 31) / 32;
  const std::size_t warp_registers = rounded_up(registers_of(kernel), kRegisterUnit) * 32;
  const std::size_t by_warps = device.threads_per_multiprocessor / 32 / warps;
  const std::size_t by_registers = device.registers_per_multiprocessor / warp_registers / warps;
  const std::size_t of_block = rounded_up(shared + device.shared_reserved, device.shared_granularity);
  const std::size_t by_shared = shared_setting(kernel, of_block) / of_block;
  return static_cast<int>(std::min({by_warps, by_registers, by_shared, std::size_t(device.blocks_per_multiprocessor)}));
}

}  // namespace machine::runtime

using namespace machine::runtime;

namespace {

cudaError_t active_blocks(const char* call, int* blocks, const void* function, int threads, size_t shared) {
  return entry(call, [&](Lock&) {
    require(blocks && threads > 0, cudaErrorInvalidValue, "the result's address is null or the block is empty");
    *blocks = blocks_per_multiprocessor(kernel_of(function), static_cast<std::size_t>(threads), shared);
    return cudaSuccess;
  });
}

int clusters_at_a_time(const cudaLaunchConfig_t& config, CUkern_st& kernel) {
  std::size_t size = 1;
  for (unsigned i = 0; i < config.numAttrs; ++i)
    if (config.attrs[i].id == cudaLaunchAttributeClusterDimension) {
      const auto& cluster = config.attrs[i].val.clusterDim;
      size = std::size_t{cluster.x} * cluster.y * cluster.z;
    }
  const std::size_t threads = std::size_t{config.blockDim.x} * config.blockDim.y * config.blockDim.z;
  const int blocks = blocks_per_multiprocessor(kernel, threads, config.dynamicSmemBytes);
  return static_cast<int>(std::size_t(blocks) * limits().multiprocessors / std::max<std::size_t>(size, 1));
}

}  // namespace

extern "C" {

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* f, int threads, size_t shared) {
  return active_blocks("cudaOccupancyMaxActiveBlocksPerMultiprocessor", blocks, f, threads, shared);
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const void* f, int threads,
                                                                   size_t shared, unsigned) {
  return active_blocks("cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags", blocks, f, threads, shared);
}

cudaError_t cudaOccupancyAvailableDynamicSMemPerBlock(size_t* bytes, const void* f, int blocks, int threads) {
  return entry("cudaOccupancyAvailableDynamicSMemPerBlock", [&](Lock&) {
    require(bytes && blocks > 0 && threads > 0, cudaErrorInvalidValue, "a count is 0 or the result's address is null");
    CUkern_st& kernel = kernel_of(f);
    const std::size_t used = kernel.kernel().attributes().static_shared;
    require(blocks <= blocks_per_multiprocessor(kernel, static_cast<std::size_t>(threads), 0), cudaErrorInvalidValue,
            "so many blocks do not fit a multiprocessor");
    const std::size_t unit = limits().shared_granularity;
    // The system's part of each block is not subtracted, as it is not on the hardware.
    const std::size_t all =
        shared_setting(kernel, blocks == 1 ? limits().shared_per_multiprocessor : used + limits().shared_reserved);
    const std::size_t share = all / static_cast<std::size_t>(blocks) / unit * unit;
    *bytes = std::min(share > used ? share - used : 0, kernel.dynamic_shared_limit());
    return cudaSuccess;
  });
}

cudaError_t cudaOccupancyMaxActiveClusters(int* clusters, const void* f, const cudaLaunchConfig_t* config) {
  return entry("cudaOccupancyMaxActiveClusters", [&](Lock&) {
    require(clusters && config, cudaErrorInvalidValue, "an argument is null");
    *clusters = clusters_at_a_time(*config, kernel_of(f));
    return cudaSuccess;
  });
}
}
