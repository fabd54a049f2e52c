#include "observers/synccheck.hpp"

#include "memory/address_space.hpp"

namespace machine::checks {

namespace {

struct Words {
  const char* check;
  const char* kind;
  const char* remedy;
  report::Level level = report::Level::error;
};

Words words_of(Fault fault) {
  using enum report::Level;
  switch (fault) {
    case Fault::illegal_address: return {"memcheck", "Invalid address", ""};
    case Fault::misaligned_address: return {"memcheck", "Misaligned address", ""};
    case Fault::trap:
      return {
          "launch", "Trap instruction",
          "the kernel ended itself: see the condition before the trap; a store to __constant__ memory compiles to one"};
    case Fault::assertion: return {"launch", "Assertion failed", ""};
    case Fault::breakpoint: return {"launch", "Breakpoint instruction", ""};
    case Fault::divergent_barrier:
      return {"synccheck", "Divergent thread(s) in warp at a barrier",
              "every thread of the block must reach the same barrier: move it out of the branch"};
    case Fault::passed_barrier:
      return {"synccheck", "Divergent thread(s) in block at a barrier",
              "every thread of the block must reach the barrier: move it out of the branch or loop, or let the threads "
              "that do "
              "not need it return for good"};
    case Fault::barrier_count:
      return {
          "synccheck", "Invalid thread count of a barrier",
          "the count must be a multiple of 32, at most the block's threads, and the same for all that use the barrier"};
    case Fault::barrier_number:
      return {"synccheck", "Invalid number of a barrier", "a block has 16 barriers, with the numbers 0 to 15"};
    case Fault::barrier_mixed:
      return {"synccheck", "Different barrier operations meet", "give each kind of barrier its own number"};
    case Fault::mask_excludes_self:
      return {"synccheck", "Calling thread is not in the mask",
              "name in the mask every lane that executes the instruction"};
    case Fault::mask_names_exited:
      return {"synccheck", "Mask names a lane that has exited", "build the mask from the lanes that are there",
              warning};
    case Fault::mask_mismatch:
      return {"synccheck", "Lanes of one collective gave different masks", "compute the mask once, before the branch"};
    case Fault::shuffle_width:
      return {"synccheck", "Invalid width of a shuffle", "the width must be 1, 2, 4, 8, 16 or 32"};
    case Fault::deadlock: return {"synccheck", "Deadlock", ""};
    case Fault::mbarrier_invalid:
      return {
          "synccheck", "Invalid mbarrier operation",
          "initialise the mbarrier once, order that before its first use, and invalidate it before its memory is used "
          "for anything else"};
    case Fault::async_not_waited:
      return {"synccheck", "Block ended with async copies in flight", "wait for the copies before the block ends",
              warning};
    case Fault::bulk_invalid: return {"memcheck", "Invalid bulk copy", ""};
    case Fault::unsupported: return {"launch", "Not supported by the CPU device", ""};
    case Fault::stack_overflow:
      return {"launch", "Stack overflow",
              "end the recursion earlier, or ask for more with cudaDeviceSetLimit(cudaLimitStackSize, bytes)"};
    case Fault::double_free: return {"memcheck", "Double free", "free an allocation once, by one thread"};
    case Fault::invalid_free:
      return {"memcheck", "Invalid free", "pass to free() and delete what malloc() and new of a kernel gave"};
    case Fault::invalid_call: return {"launch", "Invalid call", ""};
    case Fault::stalled: return {"launch", "Kernel does not end", ""};
  }
  return {"launch", "Fault", ""};
}

}  // namespace

std::string_view check_of(Fault fault) { return words_of(fault).check; }

void report_fault(Sink& sink, const LaunchInfo& launch, const WarpPoint& point, const FaultEvent& event) {
  // A full mask over a partial warp is everywhere and works; a shuffle that reads such a lane is a fault of its own.
  if (event.fault == Fault::mask_names_exited) return;
  const Words words = words_of(event.fault);
  if (!sink.first({400 + static_cast<std::uint32_t>(event.fault), point.pc, event.other ? event.other->pc : 0, 0}))
    return;
  report::Finding f;
  f.check = words.check;
  f.level = words.level;
  f.kind = words.kind;
  f.message = event.detail.empty() ? std::string(words.kind) : one_line(event.detail);
  if (event.fault != Fault::trap || event.detail.empty()) f.remedy = words.remedy;
  const unsigned lane = event.lanes != 0 ? static_cast<unsigned>(std::countr_zero(event.lanes)) : 0;
  if (event.address && event.lanes != 0) {
    const std::uint64_t address = event.address[lane];
    const Object* object = event.space == Space::global ? AddressSpace::instance().find(address) : nullptr;
    if (event.space == Space::global && !object) object = AddressSpace::instance().nearest(address);
    f.address = describe_address(address, object);
  }
  f.sites.push_back(site_of(launch, point.block->index, point.warp, lane, point.pc));
  if (const WarpPoint* other = event.other)
    f.sites.push_back(site_of(launch, other->block->index, other->warp,
                              static_cast<unsigned>(std::countr_zero(other->active)), other->pc));
  sink.add(std::move(f));
}

}  // namespace machine::checks
