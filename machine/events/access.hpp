// One memory access of one warp: 32 lanes at once, as execution reports it to the checks.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

namespace machine {

using Mask = std::uint32_t;  // bit l: lane l
inline constexpr unsigned kWarp = 32;
inline constexpr Mask kFullMask = 0xffffffffu;

enum class AccessKind : std::uint8_t {
  load,
  store,
  atomic,       // read-modify-write that returns the old value (atom)
  reduction,    // read-modify-write that returns nothing (red)
  async_read,   // source of a cp.async when it lands
  async_write,  // destination of a cp.async when it lands, zero-filled bytes included
};
enum class Space : std::uint8_t { global, shared, local, param, constant };
enum class Order : std::uint8_t { weak, volatile_, relaxed, acquire, release, acq_rel, mmio };
enum class Scope : std::uint8_t { none, cta, cluster, gpu, sys };
enum class CacheOp : std::uint8_t { none, ca, cg, cs, lu, cv, wb, wt, nc };

// How the addresses of the lanes lie to each other.
enum class Shape : std::uint8_t {
  contiguous,  // lane l at address[0] + l * width, all 32 lanes: one run of 32 * width bytes
  uniform,     // every lane of `lanes` at the same address
  scattered,   // anything else; `breaks` still gives the runs
};

// Component c of what a store or an atomic writes, lane l: `bytes` bytes at base + l * stride.
struct Component {
  const std::byte* base = nullptr;
  std::uint32_t stride = 0;
};

struct Undefined;  // undefined.hpp
enum class Merge : std::uint8_t;

// address[l] is valid for the lanes in `lanes`, and means
//   global, param, constant  the address itself
//   shared                   the storage address: block.shared + offset (so the arena's shadows apply)
//   local                    the offset in the thread's own local space; storage is the executor's business
// A generic access is split by space before it is reported, so `space` is always the true one.
struct Access {
  AccessKind kind = AccessKind::load;
  Space space = Space::global;
  Order order = Order::weak;
  Scope scope = Scope::none;
  CacheOp cache = CacheOp::none;
  Shape shape = Shape::scattered;
  bool generic = false;         // the instruction used a generic address
  std::uint8_t components = 1;  // vector length: 1, 2, 4 or 8
  std::uint32_t width = 4;      // bytes a lane in all (components * component size): 1 to 32; the alignment asked for
  Mask lanes = 0;               // lanes that take part; never 0
  // Bit l (l in lanes): lane l does not go on where the lane before it (of `lanes`) ended. The runs that begin at set
  // bits are contiguous memory. For shape contiguous it is 1. For uniform it equals `lanes`.
  Mask breaks = 0;
  const std::uint64_t* address = nullptr;  // [32]
  Component data[8];                       // stores and atomics: the operand; base null otherwise
  // What is undefined: of a store's or atomic's operand (for the checks), and of what a load or atomic gives (set
  // by them). Null when nobody follows undefined values.
  Undefined* undefined = nullptr;
  Merge merge{};  // atomics: how operand and memory make the new value

  unsigned first_lane() const { return static_cast<unsigned>(std::countr_zero(lanes)); }

  // Calls f(first address, bytes, lanes of the run) for each maximal run of lanes with adjacent memory.
  template <class F>
  void for_each_run(F&& f) const {
    Mask rest = lanes;
    while (rest != 0) {
      const unsigned first = static_cast<unsigned>(std::countr_zero(rest));
      const Mask above = first == 31 ? 0 : ~Mask{0} << (first + 1);
      const Mask next = breaks & rest & above;
      const Mask until = next == 0 ? kFullMask : (Mask{1} << std::countr_zero(next)) - 1;
      const Mask run = rest & until;
      f(address[first], std::uint64_t{width} * static_cast<unsigned>(std::popcount(run)), run);
      rest &= ~run;
    }
  }
};

}  // namespace machine
