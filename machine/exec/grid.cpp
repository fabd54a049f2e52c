// Launches: what is refused, chunks on worker threads, counters.
//
// Blocks that cannot talk to each other are cut into chunks, whose number depends on the grid alone, and worker threads
// run them in any order. When the checks find that chunks met, memory is restored and the launch repeated as one.
#include <xmmintrin.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <numeric>

#include "exec/attempt.hpp"
#include "exec/crew.hpp"
#include "exec/kernel.hpp"
#include "memory/device_heap.hpp"

namespace machine {
namespace {

// How many chunks a launch is cut into: 16, and up to 64 where each still has some blocks, so that the last chunks to
// end do not leave many cores idle. It does not depend on the cores that run them.
std::uint64_t chunks_of(std::uint64_t blocks) {
  return std::min(blocks, std::clamp<std::uint64_t>(blocks / 4, 16, 64));
}

// Blocks that the device holds at a time.
std::uint32_t residency(const LaunchRequest& r, const Options& o) {
  if (o.resident_blocks != 0) return o.resident_blocks;
  const std::uint64_t threads = std::max<std::uint64_t>(r.block.count(), 1);
  const std::uint64_t shared_limit = o.arch == Arch::sm_90 ? 233472 : 167936;
  const std::uint64_t shared = r.kernel->shared().declared + std::uint64_t{r.dynamic_shared} + 1024;
  std::uint64_t per_sm = std::min<std::uint64_t>(2048 / ((threads + 31) / 32 * 32), 32);
  per_sm = std::max<std::uint64_t>(std::min(per_sm, shared_limit / shared), 1);
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(per_sm * o.multiprocessors, 1u << 16));
}

// What the workers of a launch counted and met, in the order of their chunks.
void gather(LaunchResult& result, const Program& program, const std::vector<Worker>& workers) {
  Counters& c = result.counters;
  std::vector<BlockCount> counts(program.block_count);
  for (const Worker& k : workers) {
    for (std::size_t b = 0; b < k.counts.size(); ++b)
      counts[b].warps += k.counts[b].warps, counts[b].lanes += k.counts[b].lanes;
    c.bytes_loaded += k.bytes_loaded;
    c.bytes_stored += k.bytes_stored;
    if (result.status == LaunchStatus::ok && k.status != LaunchStatus::ok)
      result.status = k.status, result.message = k.message;
    result.printed += k.printed;
  }
  for (const auto& f : program.functions)
    for (const auto& b : f.blocks) {
      const BlockCount& n = counts[b.id];
      c.warp_instructions += n.warps * b.length;
      c.thread_instructions += n.lanes * b.length;
      for (std::size_t s = 0; s < kClasses; ++s) c.by_class[s] += n.warps * b.classes[s];
    }
}

void run_chunks(const Launching& launch, Attempt& attempt) {
  const std::uint64_t chunks = launch.info.chunks, blocks = launch.request.grid.count();
  std::atomic<bool> failed{false};
  std::vector<std::uint64_t> order(chunks);
  std::iota(order.begin(), order.end(), std::uint64_t{0});
  Turns turns;
  turns.begin(launch.options.seed, blocks, launch.options.quantum);
  if (turns.permuted() && launch.fits) turns.shuffle(order.data(), order.size());
  const auto run_one = [&](std::uint64_t n) {
    const std::uint64_t c = order[n];
    run_chunk(launch, attempt, c, launch.options.seed, {blocks * c / chunks, blocks * (c + 1) / chunks, {}}, failed);
  };
  const std::uint64_t threads = std::min<std::uint64_t>(std::max(launch.options.cores, 1u), chunks);
  if (threads <= 1) {
    for (std::uint64_t n = 0; n < chunks; ++n) run_one(n);
    return;
  }
  std::atomic<std::uint64_t> next{0};
  Crew::instance().run(static_cast<unsigned>(threads - 1), [&] {
    for (std::uint64_t n = next++; n < chunks; n = next++) run_one(n);
  });
}

// The stack of a thread. A frame may occupy more here than it is charged for: up to four times as much.
void give_stack(Launching& launch) {
  const StackNeed& need = launch.program.stack;
  // Blocks that are resident at a time share what there is.
  const std::uint64_t threads =
      std::min<std::uint64_t>(launch.request.grid.count(), residency(launch.request, launch.options)) *
      launch.request.block.count();
  const std::uint64_t most = kOnChipBytes / 8 / std::max<std::uint64_t>(threads, 1);
  const std::uint64_t grown = need.grows ? std::min<std::uint64_t>(launch.request.stack_bytes, most) : 0;
  launch.local_bytes = static_cast<std::uint32_t>(need.space + 4 * grown);
  launch.stack_limit = need.charge + grown;
}

// Blocks, grid and memory of the request against what the kernel and the architecture allow.
std::string refusal(const LaunchRequest& r, const Options& o) {
  const auto& a = r.kernel->attributes();
  if (r.grid.count() == 0 || r.block.count() == 0) return "an empty grid or block";
  if (r.grid.x > 0x7fffffffu || r.grid.y > 65535 || r.grid.z > 65535)
    return "the grid is larger than the device allows";
  if (r.block.x > 1024 || r.block.y > 1024 || r.block.z > 64 || r.block.count() > 1024)
    return "the block is larger than the device allows";
  if (r.block.count() > a.max_threads) return "the block has more threads than .maxntid allows";
  if (a.required_block.x != 0 && !(a.required_block == r.block)) return "the block differs from .reqntid";
  if (r.cluster.count() > 1 || a.cluster.count() > 1) return "clusters of more than one block are not supported";
  if (r.params.size() < a.param_bytes)
    return "the parameters are " + std::to_string(r.params.size()) + " bytes, " + std::to_string(a.param_bytes) +
           " are needed";
  const std::uint64_t limit = o.arch == Arch::sm_90 ? 232448 : 166912;
  if (std::uint64_t{a.static_shared} + r.dynamic_shared > limit) return "more shared memory than the device has";
  return {};
}

}  // namespace

void Counters::add(const Counters& o) {
  blocks += o.blocks, warps += o.warps, threads += o.threads;
  warp_instructions += o.warp_instructions, thread_instructions += o.thread_instructions;
  for (std::size_t k = 0; k < kClasses; ++k) by_class[k] += o.by_class[k];
  bytes_loaded += o.bytes_loaded, bytes_stored += o.bytes_stored;
}

std::string_view class_name(InstructionClass c) {
  static constexpr std::string_view kNames[] = {
      "integer",     "logic",      "float32",       "float64",      "half",        "conversion",   "move",
      "predicate",   "special",    "load global",   "store global", "load shared", "store shared", "load local",
      "store local", "load param", "load constant", "atomic",       "async copy",  "matrix",       "shuffle",
      "barrier",     "fence",      "control",       "other"};
  static_assert(std::size(kNames) == kClasses);
  return kNames[static_cast<std::size_t>(c)];
}

namespace {

LaunchResult refused(LaunchStatus status, std::string why) {
  LaunchResult result;
  result.status = status;
  result.message = std::move(why);
  return result;
}

// What the checks are given of a launch. `chunks` comes later.
LaunchInfo info_of(const LaunchRequest& request, const Program& program, const Object& params, std::uint32_t resident) {
  LaunchInfo info;
  info.kernel = request.kernel;
  info.operation = request.operation;
  info.grid = request.grid;
  info.block = request.block;
  info.dynamic_shared = request.dynamic_shared;
  info.warps_per_block = static_cast<std::uint32_t>((request.block.count() + kWarp - 1) / kWarp);
  info.cooperative = request.cooperative;
  info.communicates = program.communicates || request.cooperative;
  info.params = &params;
  info.stores = program.stores;
  info.resident_limit = info.communicates ? resident : 1;
  return info;
}

// Runs the launch until the checks are content with how it was cut into chunks: in one piece they always are.
void attempt_launch(Launching& now, LaunchResult& result) {
  const bool tries = wants_further_schedules(now);
  now.host_waits = tries && (!now.request.host || now.request.host() == HostState::waits);
  const unsigned control = _mm_getcsr();
  for (;;) {
    if (now.observer != nullptr) now.observer->launch_begin(now.info);
    Attempt attempt(now, now.info.chunks, now.info.chunks > 1 || tries);
    run_chunks(now, attempt);
    _mm_setcsr(control);
    if (tries) result.schedules = try_further_schedules(now, attempt);
    const bool valid = now.observer == nullptr || now.observer->join(attempt.forks);
    if (valid || now.info.chunks == 1) {
      const auto& workers = attempt.workers;
      gather(result, now.program, workers);
      if (now.request.dependency_wait &&
          std::none_of(workers.begin(), workers.end(), [](const Worker& k) { return k.dependency_passed; }))
        now.request.dependency_wait();
      break;
    }
    for (UndoLog& log : attempt.undo) log.restore();
    now.info.chunks = 1;
    result.repeated = true;
  }
  if (now.observer != nullptr) now.observer->launch_end(now.info);
}

// With its parameters in memory.
LaunchResult launch_prepared(const LaunchRequest& request, const Options& options, Observer* observer,
                             const Program& program, const Object& params) {
  auto& space = AddressSpace::instance();
  const std::uint64_t blocks = request.grid.count();
  const std::uint32_t resident = residency(request, options);
  if (request.cooperative && blocks > resident)
    return refused(LaunchStatus::unsupported,
                   request.kernel->name() + ": a cooperative grid of " + std::to_string(blocks) +
                       " blocks does not fit the device, which holds " + std::to_string(resident));
  // The barrier of a cooperative grid: a zeroed word that %envreg1 and %envreg2 point at. Other grids have none, and
  // grid.sync() traps.
  const Object* workspace = program.grid_sync && request.cooperative
                                ? space.allocate(ObjectKind::param, 256, 512, "grid barrier", request.operation)
                                : nullptr;
  Launching now{request, options, program, observer, {}, reinterpret_cast<std::byte*>(params.base)};
  now.grid_workspace = workspace != nullptr ? workspace->base : 0;
  give_stack(now);
  now.info = info_of(request, program, params, resident);
  now.fits = blocks <= resident;
  // A kernel whose threads all wait before they touch memory runs as if launched after the wait.
  now.waited = program.waits_first && request.dependency_wait;
  // Addresses that malloc gives depend on the order of the blocks.
  if (program.uses_heap) DeviceHeap::instance().begin(request.heap_bytes);
  const bool apart = !now.info.communicates && !program.uses_heap &&
                     (now.waited || !program.waits_for_dependency || !request.dependency_wait);
  now.info.chunks = apart ? chunks_of(blocks) : 1;
  if (now.waited) request.dependency_wait();
  static std::atomic<std::uint64_t> launches{0};
  now.serial = ++launches;
  now.start = std::chrono::steady_clock::now();

  LaunchResult result;
  attempt_launch(now, result);
  result.counters.blocks = blocks;
  result.counters.warps = blocks * now.info.warps_per_block;
  result.counters.threads = blocks * request.block.count();
  if (workspace != nullptr) space.release(workspace->base, request.operation);
  return result;
}

}  // namespace

LaunchResult launch(const LaunchRequest& request, const Options& options, Observer* observer) {
  const auto* kernel = static_cast<const KernelImpl*>(request.kernel);
  const Program* program = nullptr;
  try {
    program = &kernel->program();
  } catch (const PtxError& error) {
    return refused(LaunchStatus::invalid_ptx, error.what());
  }
  if (auto why = refusal(request, options); !why.empty())
    return refused(LaunchStatus::unsupported, kernel->name() + ": " + why);
  auto& space = AddressSpace::instance();
  const auto param_bytes = std::max<std::size_t>(kernel->attributes().param_bytes, 1);
  const Object* params =
      space.allocate(ObjectKind::param, param_bytes, 512, kernel->name() + " parameters", request.operation);
  if (params == nullptr) return refused(LaunchStatus::unsupported, kernel->name() + ": no room for the parameters");
  if (!request.params.empty())
    std::memcpy(reinterpret_cast<void*>(params->base), request.params.data(),
                std::min(request.params.size(), param_bytes));
  LaunchResult result = launch_prepared(request, options, observer, *program, *params);
  space.release(params->base, request.operation);
  return result;
}

}  // namespace machine
