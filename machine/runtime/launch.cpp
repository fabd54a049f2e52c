// Launches: checks against the limits of the architecture, argument packing, the launching entries.
#include <algorithm>
#include <cstring>

#include "runtime/api.hpp"
#include "runtime/limits.hpp"
#include "runtime/occupancy.hpp"
#include "runtime/stream.hpp"

using namespace machine::runtime;
using machine::Dim3;

namespace {

// What the architectures allow a thread. ptxas compiles more without a word.
constexpr std::uint32_t kLocalBytes = 512u << 10;

struct Configuration {
  dim3 grid, block;
  size_t shared;
  cudaStream_t stream;
};

// What <<<...>>> pushed, taken by the host stub right after. Exit handlers and static destructors launch as well, when
// the first thread's own variables are gone.
std::vector<Configuration>& pushed() {
  thread_local auto& stack = *new std::vector<Configuration>;
  return stack;
}

struct Attributes {
  bool cooperative = false;
  bool programmatic = false;
  Dim3 cluster{1, 1, 1};
};

std::string text(const dim3& size) {
  return "(" + std::to_string(size.x) + "," + std::to_string(size.y) + "," + std::to_string(size.z) + ")";
}

// CUDA 13 answers cudaErrorInvalidValue where earlier releases had cudaErrorInvalidConfiguration.
void check_dimensions(const dim3& grid, const dim3& block) {
  const unsigned g[3] = {grid.x, grid.y, grid.z};
  const unsigned b[3] = {block.x, block.y, block.z};
  for (int i = 0; i < 3; ++i) {
    if (g[i] == 0 || g[i] > kMaxGrid[i])
      fail(cudaErrorInvalidValue,
           "the grid " + text(grid) + " has a dimension of 0 or above the limit (2147483647,65535,65535)");
    if (b[i] == 0 || b[i] > kMaxBlock[i])
      fail(cudaErrorInvalidValue,
           "the block " + text(block) + " has a dimension of 0 or above the limit (1024,1024,64)");
  }
  if (std::uint64_t{block.x} * block.y * block.z > kMaxThreadsPerBlock)
    fail(cudaErrorInvalidValue, "the block " + text(block) + " has more than 1024 threads");
}

void check_kernel(CUkern_st& kernel, const dim3& block, size_t shared) {
  const auto& attributes = kernel.kernel().attributes();
  const std::uint64_t threads = std::uint64_t{block.x} * block.y * block.z;
  if (threads > attributes.max_threads)
    fail(cudaErrorInvalidValue, std::to_string(threads) +
                                    " threads a block, but the kernel's __launch_bounds__ allow " +
                                    std::to_string(attributes.max_threads));
  const Dim3& required = attributes.required_block;
  if (required.count() != 0 && required != Dim3{block.x, block.y, block.z})
    fail(cudaErrorInvalidValue, "the block " + text(block) + " is not the one that the kernel requires");
  if (attributes.static_shared + shared > limits().shared_per_block_optin)
    fail(cudaErrorInvalidValue, std::to_string(attributes.static_shared + shared) + " bytes of shared memory, but sm_" +
                                    std::to_string(limits().architecture) + " has " +
                                    std::to_string(limits().shared_per_block_optin) + " a block");
  if (shared > kernel.dynamic_shared_limit())
    fail(cudaErrorInvalidValue, std::to_string(shared) + " bytes of dynamic shared memory, but this kernel may use " +
                                    std::to_string(kernel.dynamic_shared_limit()) +
                                    ": raise cudaFuncAttributeMaxDynamicSharedMemorySize first");
  if (attributes.local_bytes > kLocalBytes)
    fail(cudaErrorLaunchOutOfResources, std::to_string(attributes.local_bytes) +
                                            " bytes of local memory a thread are more than the " +
                                            std::to_string(kLocalBytes) + " that there are");
  if (registers_of(kernel) * threads > static_cast<std::uint64_t>(limits().registers_per_multiprocessor))
    fail(cudaErrorLaunchOutOfResources, std::to_string(registers_of(kernel)) + " registers a thread times " +
                                            std::to_string(threads) + " threads are more than the " +
                                            std::to_string(limits().registers_per_multiprocessor) +
                                            " of a multiprocessor");
}

void check_cooperative(CUkern_st& kernel, const dim3& grid, const dim3& block, size_t shared) {
  const std::uint64_t blocks = std::uint64_t{grid.x} * grid.y * grid.z;
  const std::uint64_t resident =
      std::uint64_t(blocks_per_multiprocessor(kernel, block.x * block.y * block.z, shared)) * limits().multiprocessors;
  if (blocks > resident)
    fail(cudaErrorCooperativeLaunchTooLarge,
         std::to_string(blocks) + " blocks, but " + std::to_string(resident) + " can be resident at a time");
}

void check_cluster(const Dim3& cluster, const dim3& grid) {
  if (cluster.count() == 1) return;
  require(limits().clusters, cudaErrorNotSupported, "this architecture has no clusters");
  require(grid.x % cluster.x == 0 && grid.y % cluster.y == 0 && grid.z % cluster.z == 0, cudaErrorInvalidClusterSize,
          "the grid is no multiple of the cluster");
}

std::vector<std::byte> packed(const machine::Kernel& kernel, void** arguments) {
  std::vector<std::byte> block(kernel.attributes().param_bytes);
  std::size_t index = 0;
  for (const auto& param : kernel.params()) {
    require(arguments && arguments[index], cudaErrorInvalidValue, "a kernel argument is null");
    if (block.size() < std::size_t{param.offset} + param.size) block.resize(std::size_t{param.offset} + param.size);
    std::memcpy(block.data() + param.offset, arguments[index++], param.size);
  }
  return block;
}

}  // namespace

namespace machine::runtime {

KernelWork checked_launch(const void* function, dim3 grid, dim3 block, void** arguments, size_t shared,
                          const cudaLaunchAttribute* list, unsigned count) {
  CUkern_st& kernel = kernel_of(function);
  Attributes attributes;
  if (const Dim3& built_in = kernel.kernel().attributes().cluster; built_in.count() > 1) attributes.cluster = built_in;
  if (const auto& set = kernel.required_cluster; set[0] + set[1] + set[2] != 0)
    attributes.cluster = {std::max(set[0], 1u), std::max(set[1], 1u), std::max(set[2], 1u)};
  for (unsigned i = 0; i < count; ++i) {
    const auto& value = list[i].val;
    switch (list[i].id) {
      case cudaLaunchAttributeCooperative: attributes.cooperative = value.cooperative != 0; break;
      case cudaLaunchAttributeProgrammaticStreamSerialization:
        attributes.programmatic = value.programmaticStreamSerializationAllowed != 0;
        break;
      case cudaLaunchAttributeClusterDimension:
        attributes.cluster = {value.clusterDim.x, value.clusterDim.y, value.clusterDim.z};
        break;
      case cudaLaunchAttributeProgrammaticEvent:
      case cudaLaunchAttributeLaunchCompletionEvent:
        fail(cudaErrorNotSupported, "launch attributes that carry an event are not provided by the CPU device");
      default: break;  // the others change speed only
    }
  }
  check_dimensions(grid, block);
  check_kernel(kernel, block, shared);
  check_cluster(attributes.cluster, grid);
  if (attributes.cooperative) check_cooperative(kernel, grid, block, shared);
  KernelWork work;
  work.kernel = &kernel;
  work.grid = {grid.x, grid.y, grid.z};
  work.block = {block.x, block.y, block.z};
  work.cluster = attributes.cluster;
  work.dynamic_shared = static_cast<std::uint32_t>(shared);
  work.params = packed(kernel.kernel(), arguments);
  work.cooperative = attributes.cooperative;
  work.programmatic = attributes.programmatic;
  return work;
}

}  // namespace machine::runtime

namespace {

cudaError_t launch(const char* call, const void* function, dim3 grid, dim3 block, void** arguments, size_t shared,
                   cudaStream_t stream, Default meaning, const cudaLaunchAttribute* list = nullptr,
                   unsigned count = 0) {
  return entry(call, [&](Lock& lock) {
    CUstream_st& target = stream_of(stream, meaning);
    enqueue(target, checked_launch(function, grid, block, arguments, shared, list, count), lock);
    return cudaSuccess;
  });
}

cudaError_t launch_cooperative(const void* function, dim3 grid, dim3 block, void** arguments, size_t shared,
                               cudaStream_t stream, Default meaning) {
  cudaLaunchAttribute cooperative{};
  cooperative.id = cudaLaunchAttributeCooperative;
  cooperative.val.cooperative = 1;
  return launch("cudaLaunchCooperativeKernel", function, grid, block, arguments, shared, stream, meaning, &cooperative,
                1);
}

cudaError_t launch_configured(const cudaLaunchConfig_t* config, const void* function, void** arguments,
                              Default meaning) {
  if (!config)
    return entry("cudaLaunchKernelExC",
                 [](Lock&) -> cudaError_t { fail(cudaErrorInvalidValue, "the configuration is null"); });
  return launch("cudaLaunchKernelExC", function, config->gridDim, config->blockDim, arguments, config->dynamicSmemBytes,
                config->stream, meaning, config->attrs, config->numAttrs);
}

}  // namespace

extern "C" {

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, CUstream_st* stream) {
  pushed().push_back({grid, block, shared, stream});
  return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, size_t* shared, void* stream) {
  if (pushed().empty()) return cudaErrorMissingConfiguration;
  const Configuration top = pushed().back();
  pushed().pop_back();
  *grid = top.grid;
  *block = top.block;
  *shared = top.shared;
  *static_cast<cudaStream_t*>(stream) = top.stream;
  return cudaSuccess;
}

cudaError_t cudaLaunchKernel(const void* f, dim3 grid, dim3 block, void** args, size_t shared, cudaStream_t s) {
  return launch("cudaLaunchKernel", f, grid, block, args, shared, s, Default::legacy);
}
cudaError_t cudaLaunchKernel_ptsz(const void* f, dim3 grid, dim3 block, void** args, size_t shared, cudaStream_t s) {
  return launch("cudaLaunchKernel", f, grid, block, args, shared, s, Default::per_thread);
}
cudaError_t __cudaLaunchKernel(cudaKernel_t k, dim3 grid, dim3 block, void** args, size_t shared, cudaStream_t s) {
  return launch("cudaLaunchKernel", k, grid, block, args, shared, s, Default::legacy);
}
cudaError_t __cudaLaunchKernel_ptsz(cudaKernel_t k, dim3 grid, dim3 block, void** args, size_t shared, cudaStream_t s) {
  return launch("cudaLaunchKernel", k, grid, block, args, shared, s, Default::per_thread);
}
cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* f, void** args) {
  return launch_configured(config, f, args, Default::legacy);
}
cudaError_t cudaLaunchKernelExC_ptsz(const cudaLaunchConfig_t* config, const void* f, void** args) {
  return launch_configured(config, f, args, Default::per_thread);
}
cudaError_t cudaLaunchCooperativeKernel(const void* f, dim3 grid, dim3 block, void** args, size_t shared,
                                        cudaStream_t s) {
  return launch_cooperative(f, grid, block, args, shared, s, Default::legacy);
}
cudaError_t cudaLaunchCooperativeKernel_ptsz(const void* f, dim3 grid, dim3 block, void** args, size_t shared,
                                             cudaStream_t s) {
  return launch_cooperative(f, grid, block, args, shared, s, Default::per_thread);
}
}
