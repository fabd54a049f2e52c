// What loads, stores, atomics and copies share: forming addresses, telling the checks, refusing what would do harm.
#pragma once

#include "lanes.hpp"
#include "program.hpp"

namespace machine {

enum class Via : std::uint8_t { global, shared, local, constant, param, generic };

// How an instruction touches memory. Owned by its function.
struct MemoryOp {
  AccessKind kind = AccessKind::load;
  Via via = Via::global;
  Order order = Order::weak;
  Scope scope = Scope::none;
  CacheOp cache = CacheOp::none;
  std::uint8_t base_width = 8;    // of the address register
  std::uint8_t components = 1;
  std::uint8_t element = 4;       // bytes of a component
  std::uint8_t register_width = 4;
  std::uint32_t width = 4;        // components * element
  Slot registers[8] = {};
  // Moves the lanes in `mask` between registers and the storage at `address`.
  void (*transfer)(const MemoryOp&, Warp&, const std::uint64_t* address, Mask mask, Shape shape) = nullptr;
  // The same for local memory, where address[l] is an offset.
  void (*transfer_local)(const MemoryOp&, Warp&, const std::uint64_t* offset, Mask mask, Shape shape) = nullptr;
};

// address[l] = base register + offset for every lane.
inline void form_addresses(Warp& w, Slot base, unsigned base_width, std::int64_t offset, std::uint64_t* address) {
  if (base_width == 8) {
    const auto* a = w.at<const std::uint64_t>(base);
#pragma GCC ivdep
    for (unsigned l = 0; l < kWarp; ++l) address[l] = a[l] + static_cast<std::uint64_t>(offset);
  } else {
    const auto* a = w.at<const std::uint32_t>(base);
#pragma GCC ivdep
    for (unsigned l = 0; l < kWarp; ++l) address[l] = a[l] + static_cast<std::uint32_t>(offset);
  }
}

// Shared offsets are 32-bit and relative to the block's storage.
inline void form_shared_addresses(Warp& w, Slot base, unsigned base_width, std::int64_t offset, std::uint64_t* address) {
  const std::uint64_t origin = w.block->info.shared;
  if (base_width == 8) {
    const auto* a = w.at<const std::uint64_t>(base);
#pragma GCC ivdep
    for (unsigned l = 0; l < kWarp; ++l) address[l] = origin + static_cast<std::uint32_t>(a[l] + static_cast<std::uint64_t>(offset));
  } else {
    const auto* a = w.at<const std::uint32_t>(base);
#pragma GCC ivdep
    for (unsigned l = 0; l < kWarp; ++l) address[l] = origin + static_cast<std::uint32_t>(a[l] + static_cast<std::uint32_t>(offset));
  }
}

// Lanes where address[l] != address[l - 1] + width, or whose lower neighbour is not in `lanes`. address[-1] is readable.
inline Mask find_breaks(const std::uint64_t* address, Mask lanes, std::uint32_t width) {
  Mask jumps = 0;
#if MACHINE_AVX512
  const __m512i step = _mm512_set1_epi64(width);
  for (unsigned g = 0; g < 4; ++g) {
    const __m512i here = _mm512_loadu_si512(address + 8 * g), before = _mm512_loadu_si512(address + 8 * g - 1);
    jumps |= static_cast<Mask>(_mm512_cmpneq_epi64_mask(here, _mm512_add_epi64(before, step))) << (8 * g);
  }
#else
  for (unsigned l = 1; l < kWarp; ++l) jumps |= static_cast<Mask>(address[l] != address[l - 1] + width) << l;
#endif
  return (jumps | ~(lanes << 1)) & lanes;
}
inline bool all_equal(const std::uint64_t* address, Mask lanes) {
  const std::uint64_t first = address[std::countr_zero(lanes)];
#if MACHINE_AVX512
  Mask different = 0;
  const __m512i f = _mm512_set1_epi64(static_cast<long long>(first));
  for (unsigned g = 0; g < 4; ++g)
    different |= static_cast<Mask>(_mm512_cmpneq_epi64_mask(_mm512_loadu_si512(address + 8 * g), f)) << (8 * g);
#else
  Mask different = 0;
  for (unsigned l = 0; l < kWarp; ++l) different |= static_cast<Mask>(address[l] != first) << l;
#endif
  return (different & lanes) == 0;
}

// Fills shape and breaks of an access whose lanes, width and address are set.
inline void classify(Access& a) {
  a.breaks = find_breaks(a.address, a.lanes, a.width);
  if (a.breaks == 1 && a.lanes == kFullMask) a.shape = Shape::contiguous;
  else if (a.breaks == a.lanes && all_equal(a.address, a.lanes)) a.shape = Shape::uniform;
  else a.shape = Shape::scattered;
}

// Tells the checks and keeps the lanes that may go on: aligned, inside memory that the program owns, not vetoed.
// `space` of the access must be global, shared, constant or param, or local with offsets as addresses.
Mask admit(const Inst& i, Warp& w, Access& a);
// Lanes whose address is bad; reports and returns nothing to go on with.
void address_fault(const Inst& i, Warp& w, const Access& a, Mask lanes, Fault fault);
// Before bytes of global memory change.
void before_store(Warp& w, const Access& a, Mask lanes);

inline std::byte* local_word(const Warp& w, std::uint64_t offset, unsigned lane) {
  return w.local + ((offset >> 2) * kWarp + lane) * 4 + (offset & 3);
}

// Runs `op` for the lanes in `mask`, whose addresses are in w.address() as the instruction gave them (storage addresses for
// shared, offsets for local, generic otherwise). Returns the lanes that were admitted.
Mask run_memory(const Inst& i, Warp& w, const MemoryOp& op, Mask mask);

}  // namespace machine
