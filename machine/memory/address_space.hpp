// The address space of the device: one region of virtual memory, reserved once and backed by pages only when
// they are touched. A device address is a host address, so a load is a load and a shadow can be found by
// arithmetic. The region lies at a fixed address, which makes the addresses in a report repeatable.
//
//   kArenaBase                        .. + kGlobalBytes   allocations, symbols, parameter blocks
//   kArenaBase + kGlobalBytes         .. + kOnChipBytes   storage of resident blocks: shared and local memory
//   kSharedWindow, kLocalWindow                           generic addresses of shared and local memory; never backed
//
// Only the first two hold bytes. Every storage address lies in [kArenaBase, kArenaBase + kArenaBytes), so a
// shadow with one cell for n bytes needs kArenaBytes / n cells, reserved as lazily.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <vector>

#include "memory/object.hpp"

namespace machine {

inline constexpr std::uint64_t kArenaBase = 0x1000'0000'0000;
inline constexpr std::uint64_t kGlobalBytes = std::uint64_t{256} << 30;
inline constexpr std::uint64_t kOnChipBytes = std::uint64_t{64} << 30;
inline constexpr std::uint64_t kArenaBytes = kGlobalBytes + kOnChipBytes;
inline constexpr std::uint64_t kOnChipBase = kArenaBase + kGlobalBytes;

// Generic windows: generic address = window + offset in the space. 2 GB each, the offsets are 32 bit.
inline constexpr std::uint64_t kSharedWindow = kArenaBase + kArenaBytes + (std::uint64_t{1} << 36);
inline constexpr std::uint64_t kLocalWindow = kSharedWindow + (std::uint64_t{1} << 32);
inline constexpr std::uint64_t kWindowBytes = std::uint64_t{1} << 31;

// Unowned bytes between two allocations. Larger than any tile, and free of cost since nothing backs them.
inline constexpr std::uint64_t kGuardBytes = std::uint64_t{256} << 10;

inline bool in_global_arena(std::uint64_t address) { return address - kArenaBase < kGlobalBytes; }
inline bool in_arena(std::uint64_t address) { return address - kArenaBase < kArenaBytes; }

// One byte for every 64 KB of the global arena: not 0 when a live object reaches into it. A coarse test that an access
// does not go where nothing is, cheap enough for every access; exact bounds are memcheck's.
inline constexpr unsigned kGranuleShift = 16;
inline constexpr std::uint64_t kGranuleBase = kArenaBase - (std::uint64_t{1} << 36);
inline std::uint8_t* granule_of(std::uint64_t address) {
  return reinterpret_cast<std::uint8_t*>(kGranuleBase + ((address - kArenaBase) >> kGranuleShift));
}
inline bool granule_live(std::uint64_t address) { return *granule_of(address) != 0; }
// The object, live or freed, that reaches into each of them: there is one at most, for objects begin at a granule.
inline constexpr std::uint64_t kGranuleObjectsBase = kGranuleBase + (std::uint64_t{1} << 32);
inline const Object*& granule_object(std::uint64_t address) {
  return reinterpret_cast<const Object**>(kGranuleObjectsBase)[(address - kArenaBase) >> kGranuleShift];
}

// The small objects of the device's heap share granules, of which the object above is a slab that holds no byte itself.
// A table with a place for each cell of memory says whose it is.
inline constexpr unsigned kHeapCellShift = 7;
inline constexpr std::uint64_t kHeapCellsBase = kGranuleObjectsBase + (std::uint64_t{1} << 32);
inline const Object*& heap_cell(std::uint64_t address) {
  return reinterpret_cast<const Object**>(kHeapCellsBase)[(address - kArenaBase) >> kHeapCellShift];
}

// Reserves `bytes` of zeroed, lazily backed memory at `address` (0: anywhere). Throws std::bad_alloc.
std::byte* reserve(std::uint64_t bytes, std::uint64_t address = 0);
// Gives the pages back; the region stays reserved and reads as zero.
void discard(std::byte* start, std::uint64_t bytes);

// All objects of the process. One instance a process; thread-safe. find() of device memory needs no lock: every access
// asks it.
class AddressSpace {
 public:
  static AddressSpace& instance();

  // A new object, aligned to at least 512 bytes and to its own page, zero pages not yet backed. Freed addresses are
  // used again only when the region is exhausted, oldest first. Returns nullptr when `limit` would be passed
  // (cudaErrorMemoryAllocation).
  const Object* allocate(ObjectKind kind, std::uint64_t bytes, std::uint32_t align = 512, std::string_view name = {},
                         std::uint64_t operation = 0);
  // Memory of the device's heap. Its addresses are never used again. nullptr: there are none left.
  const Object* allocate_in_heap(std::uint64_t bytes, std::uint32_t align, std::uint64_t operation);
  // The object of the heap, live or freed, whose cells or granules hold `address`.
  const Object* heap_object(std::uint64_t address) const;
  // Host memory that the program registered; kept outside the arena. nullptr when it overlaps another registration.
  const Object* register_host(std::uint64_t address, std::uint64_t bytes, std::uint64_t operation = 0);

  // Marks the object that begins at `base` as freed. Its pages are discarded; the object stays known, so that a later
  // touch is a use after free. Returns nullptr when no live object begins there. A stream-ordered free is this
  // same call, made by the shim when the stream gets there.
  const Object* release(std::uint64_t base, std::uint64_t operation = 0);

  // The object that holds `address`: live or freed; nullptr in no-man's-land. Pointers stay valid for ever.
  const Object* find(std::uint64_t address) const {
    if (!in_global_arena(address)) [[unlikely]]
      return find_registered(address);
    const Object* object = granule_object(address);
    if (object == nullptr || object->contains(address)) return object;
    return object->kind == ObjectKind::heap ? find_in_heap(address) : nullptr;
  }
  // The nearest live object below or above, for messages ("16 bytes past the end of ..."); nullptr if there is none.
  const Object* nearest(std::uint64_t address) const;
  void rename(std::uint64_t base, std::string_view name);

  // Every live object in address order, e.g. for a leak report.
  std::vector<const Object*> live() const;

  void set_limit(std::uint64_t bytes);  // total device memory; allocations beyond it fail
  std::uint64_t limit() const;
  std::uint64_t used() const;  // bytes in live device-side objects

  // Storage for on-chip memory of resident blocks, from the second part of the arena; page-aligned, zero at first.
  // Freed storage is used again at once, contents undefined.
  std::byte* on_chip(std::uint64_t bytes);
  void on_chip_release(std::byte* start, std::uint64_t bytes);

  // True when every byte of [address, address + bytes) may be touched by a kernel without harm to the host process:
  // inside the global arena in or near a live object, or inside registered host memory. Exact bounds are memcheck's
  // job.
  bool touchable(std::uint64_t address, std::uint64_t bytes) const;

 private:
  AddressSpace();
  const Object* find_registered(std::uint64_t address) const;
  const Object* find_in_heap(std::uint64_t address) const;
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace machine
