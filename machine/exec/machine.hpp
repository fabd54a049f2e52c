// The machine's front door: load PTX, look up kernels and symbols, launch.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "events/observer.hpp"
#include "memory/address_space.hpp"
#include "memory/layout.hpp"

namespace machine {

// A PTX text that the machine refuses: unknown spelling, garbage, a construct that it does not run. `what()` is one
// line: kernel, PTX line, spelling.
class PtxError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

enum class Arch : std::uint8_t { sm_80 = 80, sm_90 = 90 };

struct Options {
  Arch arch = Arch::sm_90;
  std::uint64_t seed = 0;          // 0: warps and blocks in order; other values permute the schedule
  unsigned schedules = 0;          // under the checks, most further schedules tried of a launch that communicates
  unsigned cores = 1;              // worker threads; never changes results
  unsigned resident_blocks = 0;    // most blocks of a communicating kernel resident at a time; 0: what the SM count
                                   // and the occupancy of the architecture allow, at most 2048 threads an SM
  unsigned multiprocessors = 132;  // shown as %nsmid, used for residency
  std::uint64_t quantum = 20'000;  // most warp instructions before another warp or block gets its turn
  std::uint64_t instruction_limit = 0;  // warp instructions of a launch; 0: none
  double timeout_s = 0;                 // wall-clock limit of a launch; 0: none
  bool late_copies = true;              // async copies land as late as their wait allows (false: at issue)
};

// ---- programs ----------------------------------------------------------------------------------------------------

struct Param {
  std::string name;
  std::uint32_t offset = 0, size = 0, align = 1;  // bytes in the parameter block
};

struct SourceLine {
  std::string function;  // where it was inlined into, innermost first: "" at the end of the chain
  std::string file;
  std::uint32_t line = 0;
};

struct Location {
  std::vector<SourceLine> lines;  // innermost first, then the call sites it was inlined at; empty without -lineinfo
  std::uint32_t ptx_line = 0;
  std::string text;  // the PTX instruction
};

struct KernelAttributes {
  std::uint32_t static_shared = 0;   // bytes, as declared
  std::uint32_t local_bytes = 0;     // a thread
  std::uint32_t max_threads = 1024;  // .maxntid product, or 1024
  Dim3 required_block{0, 0, 0};      // .reqntid, zero when absent
  std::uint32_t min_blocks = 0;      // .minnctapersm
  Dim3 cluster{0, 0, 0};             // .reqnctapercluster / explicit cluster
  std::uint32_t param_bytes = 0;
};

class Kernel {
 public:
  virtual ~Kernel() = default;
  virtual const std::string& name() const = 0;  // mangled
  virtual std::span<const Param> params() const = 0;
  virtual const KernelAttributes& attributes() const = 0;  // cheap: from the header of the kernel
  virtual const SharedLayout& shared() const = 0;
  virtual Location location(std::uint32_t pc) const = 0;
  // Parses and decodes the body now; throws PtxError. launch() does so on first use.
  virtual void prepare() const = 0;
};

struct Symbol {
  std::string name;
  const Object* object = nullptr;
  bool constant = false;
};

class Module {
 public:
  virtual ~Module() = default;
  virtual const Kernel* kernel(std::string_view mangled) const = 0;  // nullptr when absent
  virtual std::vector<std::string> kernels() const = 0;              // .entry names in order of the text
  virtual const Symbol* symbol(std::string_view name) const = 0;     // nullptr when absent
  virtual std::string_view target() const = 0;                       // "sm_90"
};

// Indexes the text: directives, global symbols (allocated and initialised in the address space), where each function
// begins. Bodies are parsed when they are first launched. The text is copied. Throws PtxError.
std::unique_ptr<Module> load_ptx(std::string_view text, const Options& options);

// ---- launches ----------------------------------------------------------------------------------------------------

// The threads of the program besides those that wait for the device: none, none awake, or one at work.
enum class HostState : std::uint8_t { waits, sleeps, runs };

struct LaunchRequest {
  const Kernel* kernel = nullptr;
  Dim3 grid, block, cluster{1, 1, 1};
  std::uint32_t dynamic_shared = 0;
  std::span<const std::byte> params;  // laid out as Kernel::params() says
  bool cooperative = false;
  std::uint64_t operation = 0;         // the Operation that this launch is
  std::uint32_t stack_bytes = 1024;    // a thread, for what is not known before the launch (cudaLimitStackSize)
  std::uint64_t heap_bytes = 8 << 20;  // of the device's heap (cudaLimitMallocHeapSize)
  // Called once, when a thread first passes griddepcontrol.wait (or at the end of the grid without one).
  std::function<void()> dependency_wait;
  // What the program's own threads do meanwhile; empty: they wait for this launch.
  std::function<HostState()> host;
  // Called when the grid waits for the host: lets those go on that look after the launch and do not wait for it. True
  // when there were any, or the program has called the runtime since the last time: its threads are at work.
  std::function<bool()> release_host;
};

enum class LaunchStatus : std::uint8_t {
  ok,
  illegal_address,     // cudaErrorIllegalAddress
  misaligned_address,  // cudaErrorMisalignedAddress
  trap,                // cudaErrorLaunchFailure
  assertion,           // cudaErrorAssert
  deadlock,            // reported with who waits for what
  stalled,             // instruction limit or timeout: cudaErrorLaunchTimeout
  stack_overflow,
  invalid_call,  // a call of an address that is no function: cudaErrorInvalidPc
  invalid_ptx,   // PtxError while preparing: cudaErrorInvalidPtx
  unsupported,   // a thing that this machine does not do (clusters above 1, ...)
};

enum class InstructionClass : std::uint8_t {
  integer,
  logic,
  float32,
  float64,
  half,
  conversion,
  move,
  predicate,
  special,  // special: ex2, rcp, sin, ...
  load_global,
  store_global,
  load_shared,
  store_shared,
  load_local,
  store_local,
  load_param,
  load_constant,
  atomic,
  async_copy,
  matrix,
  shuffle,
  barrier,
  fence,
  control,
  other,
  count_
};
inline constexpr std::size_t kClasses = static_cast<std::size_t>(InstructionClass::count_);
std::string_view class_name(InstructionClass);

struct Counters {
  std::uint64_t blocks = 0, warps = 0, threads = 0;
  std::uint64_t warp_instructions = 0;
  std::uint64_t thread_instructions = 0;  // active lanes summed over the warp instructions (guarded-off lanes count,
                                          // as they issue; branch divergence does not)
  std::array<std::uint64_t, kClasses> by_class{};    // warp instructions
  std::uint64_t bytes_loaded = 0, bytes_stored = 0;  // every space; what the checks looked at
  void add(const Counters&);
};

struct LaunchResult {
  LaunchStatus status = LaunchStatus::ok;
  std::string message;  // one line when status is not ok: kernel, source line, block, thread, what
  Counters counters;
  std::string printed;     // what printf wrote, in the order of the schedule
  bool repeated = false;   // chunks met each other: the launch was repeated as one chunk
  unsigned schedules = 0;  // further schedules that were tried
};

// Runs the grid to its end. Blocks may run on options.cores threads. With an observer an address fault that the
// observer vetoed does not end the launch; without one the first fault does.
LaunchResult launch(const LaunchRequest& request, const Options& options, Observer* observer);

}  // namespace machine
