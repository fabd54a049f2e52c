// A kernel decoded for execution: its functions, instruction by instruction.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "exec/barrier_regions.hpp"
#include "exec/flow.hpp"
#include "exec/inst.hpp"
#include "exec/machine.hpp"

namespace machine {

// Formal parameters and return values of a device function, and the argument areas at its call sites: word-interleaved
// like local memory, kept in the frame's registers.
struct ParamArea {
  std::string name;
  Slot slot = 0;            // .param: first word of lane 0; .reg: the register
  std::uint32_t bytes = 0;  // a lane
  bool is_register = false;
};

struct BasicBlock {
  std::uint32_t id = 0;      // in the program
  std::uint32_t length = 0;  // PTX instructions
  std::array<std::uint16_t, kClasses> classes{};
};

// Banks are read a cache line at a time.
template <class T>
struct LineAllocator {
  using value_type = T;
  LineAllocator() = default;
  template <class U>
  LineAllocator(const LineAllocator<U>&) {}
  T* allocate(std::size_t n) { return static_cast<T*>(::operator new(n * sizeof(T), std::align_val_t{64})); }
  void deallocate(T* p, std::size_t) { ::operator delete(p, std::align_val_t{64}); }
  template <class U>
  bool operator==(const LineAllocator<U>&) const {
    return true;
  }
};
using Bytes = std::vector<std::byte, LineAllocator<std::byte>>;

struct Function;

// Where a call by address may go, by ascending address; and how values pass, as a list of slots (ops_call.cpp).
struct CallTarget {
  std::uint64_t address = 0;
  const Function* function = nullptr;
  const Slot* passing = nullptr;
};
struct CallTargets {
  std::vector<CallTarget> known;
  bool listed = false;  // by name
};

struct Function {
  std::string name;
  std::uint32_t number = 0;  // in its program
  bool is_kernel = false;
  std::vector<Inst> code;            // last one never falls through
  Bytes constants;                   // bank of broadcast immediates
  std::uint32_t frame_bytes = 64;    // registers
  std::uint32_t predicate_room = 0;  // where the next predicate goes
  std::vector<std::pair<std::uint32_t, std::uint32_t>>
      times;  // where registers lie that a clock decides, and how many bytes
  LocalLayout local;
  bool calls = false;
  bool grows_stack = false;  // alloca
  bool waits = false;        // threads meet a barrier of their block in it, or in what it calls
  std::vector<Function*> callees;
  std::vector<ParamArea> formals, results;
  std::deque<std::vector<Slot>> slot_lists;
  std::deque<std::vector<std::byte>> blobs;
  std::deque<CallTargets> call_targets;
  std::deque<BasicBlock> blocks;
  std::deque<BarrierRegion> barrier_regions;
  // Of a followed program: one for each instruction; and where registers are alive, by offset.
  std::vector<Flow> flows;
  std::vector<PlaceLife> places;
};

// What calls need of a thread's local memory: bytes of the chain of calls that needs most, in its layout here and as it
// is counted against the stack's size.
struct StackNeed {
  std::uint64_t space = 0, charge = 0;
  bool grows = false;  // there may be more: functions call themselves, or ask for memory
};

struct Statement {
  std::uint32_t line = 0;      // of the PTX text
  std::uint32_t location = 0;  // index into Program::locations, 0: none
  std::string_view text;
};

struct SourcePosition {
  std::uint32_t file = 0, line = 0;
  std::uint32_t inlined_at = 0;  // index into positions; 0: none
  std::string_view function;
};

struct Program {
  std::string kernel;
  std::deque<Function> functions;  // [0] is the kernel
  std::unordered_map<std::string, Function*> by_name;
  std::unordered_set<std::string> waiting;  // functions that `waits` will hold of, known before they are decoded
  std::vector<Statement> statements;
  std::vector<SourcePosition> positions{1};
  std::uint32_t block_count = 0;
  std::uint32_t instruction_count = 0;
  StackNeed stack;
  StoreBytes stores;
  bool communicates = false;
  // warps of a block wait for each other otherwise than at barriers: mbarriers, locks, flags
  bool waits_in_block = false;
  bool calls = false;
  bool grid_sync = false;
  bool uses_heap = false;  // malloc or free of the device
  bool waits_for_dependency = false;
  bool waits_first = false;  // for the dependency, before it touches any memory
  const SharedLayout* shared = nullptr;
  std::span<const Param> params;
  std::map<std::array<std::uint32_t, 3>, std::uint32_t> position_index;  // file, line, column -> positions

  // The same program, instruction by instruction, with the flow of each. Decoded when a warp first needs it.
  const Program& followed() const {
    std::call_once(once_, [this] { followed_ = again(); });
    return *followed_;
  }
  std::function<std::unique_ptr<Program>()> again;

 private:
  mutable std::once_flag once_;
  mutable std::unique_ptr<Program> followed_;
};

}  // namespace machine
