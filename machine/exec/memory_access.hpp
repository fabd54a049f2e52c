// What loads, stores, atomics and copies share: forming addresses, notification the checks, refusing what would do
// harm.
#pragma once

#include "events/undefined.hpp"
#include "exec/addresses.hpp"
#include "exec/program.hpp"

namespace machine {

enum class Via : std::uint8_t { global, shared, local, constant, param, generic };

// How an instruction touches memory. Owned by its function.
struct MemoryOp {
  AccessKind kind = AccessKind::load;
  Via via = Via::global;
  Order order = Order::weak;
  Scope scope = Scope::none;
  CacheOp cache = CacheOp::none;
  std::uint8_t base_width = 8;  // of the address register
  std::uint8_t components = 1;
  std::uint8_t element = 4;  // bytes of a component
  std::uint8_t register_width = 4;
  bool sign = false;         // loads narrower than the register: how they fill it
  Merge merge = Merge::any;  // atomics
  std::uint32_t width = 4;   // components * element
  Slot registers[8] = {};
  // Moves the lanes in `mask` between registers and the storage at `address`.
  void (*transfer)(const MemoryOp&, Warp&, const std::uint64_t* address, Mask mask, Shape shape) = nullptr;
  // The same for local memory, where address[l] is an offset.
  void (*transfer_local)(const MemoryOp&, Warp&, const std::uint64_t* offset, Mask mask, Shape shape) = nullptr;
};

// What some lanes touch: the lowest and the highest byte, and every bit that is set in an address of theirs.
struct AddressRange {
  std::uint64_t first = ~std::uint64_t{0}, last = 0, bits = 0;
  bool in_arena() const { return first <= last && in_global_arena(first) && in_global_arena(last); }
  // All of what is spanned is in use; false as well when that is much.
  bool live() const;
};
AddressRange range_of(const std::uint64_t* address, std::uint32_t width, Mask lanes);
inline AddressRange range_of(const Access& a) {
  if (a.shape != Shape::contiguous) return range_of(a.address, a.width, a.lanes);
  // Below the width, the bits of all are those of the first.
  return {a.address[0], a.address[kWarp - 1] + a.width - 1, a.address[0] | a.address[kWarp - 1]};
}

// Lane by lane: reports to the checks and keeps the lanes that may go on.
Mask admit_lanes(const Inst& i, Warp& w, Access& a);
// Tells the checks and keeps the lanes that may go on: aligned, inside memory that the program owns, not vetoed.
// `space` of the access must be global, shared, constant or param, or local with offsets as addresses.
inline Mask admit(const Inst& i, Warp& w, Access& a) {
  if (a.shape == Shape::scattered) return admit_lanes(i, w, a);
  // One range of memory, for which a few comparisons do.
  const std::uint64_t first = a.address[a.first_lane()],
                      bytes = a.shape == Shape::contiguous ? std::uint64_t{a.width} * kWarp : a.width;
  if ((first & (a.width - 1)) != 0) [[unlikely]]
    return admit_lanes(i, w, a);
  if (a.space == Space::shared || a.space == Space::local) {
    const std::uint64_t origin = a.space == Space::shared ? w.block->info.shared : 0;
    const std::uint64_t extent = a.space == Space::shared ? w.block->info.shared_extent : w.local_bytes;
    // Offsets of local memory are each lane's own, and contiguous ones reach as far as any.
    if (first - origin > extent || bytes > extent - (first - origin)) [[unlikely]]
      return admit_lanes(i, w, a);
    return w.observer == nullptr ? a.lanes : a.lanes & w.observer->access(w.point(i, a.lanes), a);
  }
  const std::uint64_t last = first + bytes - 1;
  if (!in_global_arena(first) || !in_global_arena(last) || !granule_live(first) || !granule_live(last)) [[unlikely]]
    return admit_lanes(i, w, a);
  return w.observer == nullptr ? a.lanes : a.lanes & w.observer->access(w.point(i, a.lanes), a);
}
// Lanes whose address is bad; reports and returns nothing to go on with.
void address_fault(const Inst& i, Warp& w, const Access& a, Mask lanes, Fault fault);
// Before bytes of global memory change.
void before_store(Warp& w, const Access& a, Mask lanes);
// Lanes looked at what others may change and changed nothing: the turn of a warp that looks at the same in vain again
// and again soon ends.
void polled(Warp& w, const std::uint64_t* address, Mask lanes);
// After an instruction by which threads talk to each other: others may go first.
inline void talked(Warp& w) {
  if (w.worker->turns.gives_way()) w.budget = 0;
}

inline std::byte* local_word(const Warp& w, std::uint64_t offset, unsigned lane) {
  return w.local + ((offset >> 2) * kWarp + lane) * 4 + (offset & 3);
}

// Runs `op` for the lanes in `mask`: its addresses come from register i.a and offset i.imm. Returns the lanes that were
// admitted.
Mask run_memory(const Inst& i, Warp& w, const MemoryOp& op, Mask mask);

}  // namespace machine
