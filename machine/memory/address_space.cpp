#include "memory/address_space.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <deque>
#include <new>
#include <vector>

#include "memory/round_up.hpp"

namespace machine {
namespace {

constexpr std::uint64_t kPage = 4096;

// Heap objects up to so many bytes share a slab; its own guard is a cell.
constexpr std::uint64_t kSmallHeapBytes = 16 << 10;
constexpr std::uint64_t kHeapCell = std::uint64_t{1} << kHeapCellShift;
constexpr std::uint64_t kSlab = 1 << 20;

// A registration keeps pages readable that the host owns; the device reaches them by the same address.
struct Extent {
  std::uint64_t base, span;  // span: bytes of arena that belong to the object, guard included
};

}  // namespace

std::byte* reserve(std::uint64_t bytes, std::uint64_t address) {
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | (address ? MAP_FIXED_NOREPLACE : 0);
  void* start = mmap(reinterpret_cast<void*>(address), bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
  if (start == MAP_FAILED || (address && start != reinterpret_cast<void*>(address))) throw std::bad_alloc();
  return static_cast<std::byte*>(start);
}

void discard(std::byte* start, std::uint64_t bytes) {
  const auto first = round_up(reinterpret_cast<std::uint64_t>(start), kPage);
  const auto last = (reinterpret_cast<std::uint64_t>(start) + bytes) / kPage * kPage;
  if (last > first) madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED);
}

namespace {

// Allocations begin at a granule, so none is shared.
void mark_granules(std::uint64_t base, std::uint64_t bytes, std::uint8_t value) {
  std::uint8_t* last = granule_of(base + std::max<std::uint64_t>(bytes, 1) - 1);
  for (std::uint8_t* g = granule_of(base); g <= last; ++g) *g = value;
}
void name_granules(std::uint64_t base, std::uint64_t bytes, const Object* object) {
  const Object** last = &granule_object(base + std::max<std::uint64_t>(bytes, 1) - 1);
  for (const Object** g = &granule_object(base); g <= last; ++g) *g = object;
}

}  // namespace

struct AddressSpace::Impl {
  mutable std::shared_mutex lock;
  std::map<std::uint64_t, std::unique_ptr<Object>> objects;  // by base; live and freed
  std::map<std::uint64_t, std::uint64_t> spans;              // base -> arena bytes with guard
  std::deque<std::uint64_t> freed;                           // bases in order of release, for reuse when exhausted
  std::vector<std::unique_ptr<Object>> forgotten;            // freed objects whose addresses were used again
  std::uint64_t next = kArenaBase + kGuardBytes;
  std::uint64_t limit = std::uint64_t{80} << 30;
  std::uint64_t used = 0;
  std::uint32_t next_id = 1;
  // registered host memory lies outside the arena
  std::map<std::uint64_t, std::unique_ptr<Object>> registered;
  std::vector<std::unique_ptr<Object>> unregistered;
  // the device's heap
  struct Slab {
    Object object;  // holds no byte
    std::uint32_t live = 0;
    bool open = true;
  };
  std::map<std::uint64_t, std::unique_ptr<Slab>> slabs;  // by base
  std::uint64_t heap_next = 0, heap_end = 0;             // what is left of the open one
  // on-chip storage: a bump pointer and free lists by size
  std::uint64_t on_chip_next = kOnChipBase;
  std::multimap<std::uint64_t, std::uint64_t> on_chip_free;  // size -> base

  // Room for a heap object of its own granules, or a slab. 0: none left.
  std::uint64_t place_in_heap(std::uint64_t bytes, std::uint64_t pitch) {
    const std::uint64_t base = round_up(next, pitch), end = base + round_up(bytes, pitch) + kGuardBytes;
    if (end + kGuardBytes > kArenaBase + kGlobalBytes) return 0;
    next = end;
    return base;
  }

  // Room for a small heap object of `span` bytes, guard included.
  std::uint64_t carve(std::uint64_t span, std::uint64_t pitch) {
    std::uint64_t base = round_up(heap_next, pitch);
    if (base + span > heap_end) {
      close_slab();
      heap_next = place_in_heap(kSlab, kSlab);
      if (heap_next == 0) return 0;
      heap_end = heap_next + kSlab;
      auto& slab = slabs[heap_next] = std::make_unique<Slab>();
      slab->object.kind = ObjectKind::heap;
      slab->object.base = heap_next;
      mark_granules(heap_next, kSlab, 1);
      name_granules(heap_next, kSlab, &slab->object);
      base = heap_next;
    }
    heap_next = base + span;
    ++slab_of(base).live;
    return base;
  }

  Slab& slab_of(std::uint64_t address) { return *std::prev(slabs.upper_bound(address))->second; }

  void close_slab() {
    if (heap_end == 0) return;
    Slab& slab = slab_of(heap_end - 1);
    slab.open = false;
    drop_if_empty(slab);
    heap_next = heap_end = 0;
  }

  void drop_if_empty(const Slab& slab) {
    if (slab.live != 0 || slab.open) return;
    mark_granules(slab.object.base, kSlab, 0);
    discard(reinterpret_cast<std::byte*>(slab.object.base), kSlab);
  }

  // Room for `span` bytes: fresh arena first, then the oldest freed object that is large enough.
  std::uint64_t place(std::uint64_t span) {
    if (next + span + kGuardBytes <= kArenaBase + kGlobalBytes) {
      const auto base = next;
      next += span;
      return base;
    }
    for (auto it = freed.begin(); it != freed.end(); ++it) {
      const auto base = *it;
      if (spans[base] < span) continue;
      freed.erase(it);
      name_granules(base, objects[base]->size, nullptr);
      forgotten.push_back(std::move(objects[base]));
      objects.erase(base);
      return base;
    }
    return 0;
  }
};

AddressSpace::AddressSpace() : impl_(std::make_unique<Impl>()) {
  reserve(kArenaBytes, kArenaBase);
  reserve(kGlobalBytes >> kGranuleShift, kGranuleBase);
  reserve((kGlobalBytes >> kGranuleShift) * sizeof(const Object*), kGranuleObjectsBase);
  reserve((kGlobalBytes >> kHeapCellShift) * sizeof(const Object*), kHeapCellsBase);
}

AddressSpace& AddressSpace::instance() {
  // Never destroyed: pointers to objects outlive static destruction of the program under test.
  static AddressSpace* space = new AddressSpace;
  return *space;
}

const Object* AddressSpace::allocate(ObjectKind kind, std::uint64_t bytes, std::uint32_t align, std::string_view name,
                                     std::uint64_t operation) {
  std::unique_lock guard(impl_->lock);
  const bool counted = kind == ObjectKind::global || kind == ObjectKind::managed || kind == ObjectKind::device_symbol;
  if (bytes > kGlobalBytes / 2) return nullptr;
  if (counted && (bytes > impl_->limit || impl_->used > impl_->limit - bytes)) return nullptr;
  const std::uint64_t pitch = std::max<std::uint64_t>(std::uint64_t{1} << kGranuleShift, align);
  const std::uint64_t span = round_up(std::max<std::uint64_t>(bytes, 1), pitch) + kGuardBytes + pitch;
  std::uint64_t slot = impl_->place(span);
  if (slot == 0) return nullptr;
  const std::uint64_t base = round_up(slot, pitch);
  auto object = std::make_unique<Object>();
  *object = Object{.id = impl_->next_id++,
                   .kind = kind,
                   .state = ObjectState::live,
                   .base = base,
                   .size = bytes,
                   .align = std::max<std::uint32_t>(align, 512),
                   .name = std::string(name),
                   .allocated = operation,
                   .freed = 0};
  const Object* result = object.get();
  impl_->spans[base] = span - (base - slot);
  impl_->objects[base] = std::move(object);
  mark_granules(base, bytes, 1);
  name_granules(base, bytes, result);
  if (counted) impl_->used += bytes;
  return result;
}

const Object* AddressSpace::allocate_in_heap(std::uint64_t bytes, std::uint32_t align, std::uint64_t operation) {
  std::unique_lock guard(impl_->lock);
  if (bytes > kGlobalBytes / 2) return nullptr;
  const std::uint64_t room = std::max<std::uint64_t>(bytes, 1);
  const bool small = room <= kSmallHeapBytes && align <= kSmallHeapBytes;
  const std::uint64_t pitch = std::max<std::uint64_t>(small ? kHeapCell : std::uint64_t{1} << kGranuleShift, align);
  const std::uint64_t span = small ? round_up(room, kHeapCell) + kHeapCell : round_up(room, pitch) + kGuardBytes;
  const std::uint64_t base = small ? impl_->carve(span, pitch) : impl_->place_in_heap(room, pitch);
  if (base == 0) return nullptr;
  auto object = std::make_unique<Object>();
  *object = Object{.id = impl_->next_id++,
                   .kind = ObjectKind::heap,
                   .state = ObjectState::live,
                   .base = base,
                   .size = bytes,
                   .align = align,
                   .name = {},
                   .allocated = operation,
                   .freed = 0};
  const Object* result = object.get();
  impl_->spans[base] = span;
  impl_->objects[base] = std::move(object);
  if (small) {
    for (std::uint64_t cell = base; cell < base + room; cell += kHeapCell) heap_cell(cell) = result;
  } else {
    mark_granules(base, room, 1);
    name_granules(base, room, result);
  }
  return result;
}

const Object* AddressSpace::heap_object(std::uint64_t address) const {
  if (!in_global_arena(address)) return nullptr;
  const Object* object = granule_object(address);
  if (object == nullptr || object->kind != ObjectKind::heap) return nullptr;
  const Object* cell = heap_cell(address);
  return cell != nullptr ? cell : object->id != 0 ? object : nullptr;
}

const Object* AddressSpace::find_in_heap(std::uint64_t address) const {
  const Object* object = heap_cell(address);
  return object != nullptr && object->contains(address) ? object : nullptr;
}

const Object* AddressSpace::register_host(std::uint64_t address, std::uint64_t bytes, std::uint64_t operation) {
  std::unique_lock guard(impl_->lock);
  auto next = impl_->registered.upper_bound(address);
  if (next != impl_->registered.end() && next->first < address + bytes) return nullptr;
  if (next != impl_->registered.begin()) {
    auto before = std::prev(next);
    if (before->second->base + before->second->size > address) return nullptr;
  }
  auto object = std::make_unique<Object>();
  *object = Object{.id = impl_->next_id++,
                   .kind = ObjectKind::registered,
                   .state = ObjectState::live,
                   .base = address,
                   .size = bytes,
                   .align = 1,
                   .name = {},
                   .allocated = operation,
                   .freed = 0};
  const Object* result = object.get();
  impl_->registered[address] = std::move(object);
  return result;
}

const Object* AddressSpace::release(std::uint64_t base, std::uint64_t operation) {
  std::unique_lock guard(impl_->lock);
  if (auto found = impl_->registered.find(base); found != impl_->registered.end()) {
    found->second->state = ObjectState::freed;
    found->second->freed = operation;
    impl_->unregistered.push_back(std::move(found->second));
    impl_->registered.erase(found);
    return impl_->unregistered.back().get();
  }
  auto found = impl_->objects.find(base);
  if (found == impl_->objects.end() || found->second->state == ObjectState::freed) return nullptr;
  Object& object = *found->second;
  object.state = ObjectState::freed;
  object.freed = operation;
  if (object.kind == ObjectKind::global || object.kind == ObjectKind::managed ||
      object.kind == ObjectKind::device_symbol)
    impl_->used -= object.size;
  if (granule_object(base) != &object) {
    Impl::Slab& slab = impl_->slab_of(base);
    --slab.live;
    impl_->drop_if_empty(slab);
    return &object;
  }
  if (object.kind != ObjectKind::heap) impl_->freed.push_back(base);
  mark_granules(base, object.size, 0);
  discard(reinterpret_cast<std::byte*>(base), round_up(object.size, kPage));
  return &object;
}

const Object* AddressSpace::find_registered(std::uint64_t address) const {
  std::shared_lock guard(impl_->lock);
  auto next = impl_->registered.upper_bound(address);
  if (next == impl_->registered.begin()) return nullptr;
  const Object* object = std::prev(next)->second.get();
  return object->contains(address) ? object : nullptr;
}

const Object* AddressSpace::nearest(std::uint64_t address) const {
  std::shared_lock guard(impl_->lock);
  const auto& table = in_global_arena(address) ? impl_->objects : impl_->registered;
  const Object* best = nullptr;
  std::uint64_t distance = ~std::uint64_t{0};
  auto consider = [&](const Object& object) {
    if (object.state != ObjectState::live) return;
    const auto end = object.base + object.size;
    const auto away = address < object.base ? object.base - address : address >= end ? address - end : 0;
    if (away < distance) distance = away, best = &object;
  };
  auto above = table.lower_bound(address);
  for (auto it = above; it != table.end(); ++it) {
    consider(*it->second);
    if (it->second->state == ObjectState::live) break;
  }
  for (auto it = above; it != table.begin();) {
    --it;
    consider(*it->second);
    if (it->second->state == ObjectState::live) break;
  }
  return best;
}

void AddressSpace::rename(std::uint64_t base, std::string_view name) {
  std::unique_lock guard(impl_->lock);
  if (auto found = impl_->objects.find(base); found != impl_->objects.end()) found->second->name = name;
  if (auto found = impl_->registered.find(base); found != impl_->registered.end()) found->second->name = name;
}

std::vector<const Object*> AddressSpace::live() const {
  std::shared_lock guard(impl_->lock);
  std::vector<const Object*> result;
  for (const auto* table : {&impl_->objects, &impl_->registered})
    for (const auto& [base, object] : *table)
      if (object->state == ObjectState::live) result.push_back(object.get());
  std::sort(result.begin(), result.end(), [](auto* a, auto* b) { return a->base < b->base; });
  return result;
}

void AddressSpace::set_limit(std::uint64_t bytes) {
  std::unique_lock guard(impl_->lock);
  impl_->limit = bytes;
}
std::uint64_t AddressSpace::limit() const {
  std::shared_lock guard(impl_->lock);
  return impl_->limit;
}
std::uint64_t AddressSpace::used() const {
  std::shared_lock guard(impl_->lock);
  return impl_->used;
}

std::byte* AddressSpace::on_chip(std::uint64_t bytes) {
  std::unique_lock guard(impl_->lock);
  bytes = round_up(std::max<std::uint64_t>(bytes, 1), kPage);
  if (auto found = impl_->on_chip_free.find(bytes); found != impl_->on_chip_free.end()) {
    auto* start = reinterpret_cast<std::byte*>(found->second);
    impl_->on_chip_free.erase(found);
    return start;
  }
  if (bytes > kArenaBase + kArenaBytes - impl_->on_chip_next) throw std::bad_alloc();
  auto* start = reinterpret_cast<std::byte*>(impl_->on_chip_next);
  impl_->on_chip_next += bytes;
  return start;
}

void AddressSpace::on_chip_release(std::byte* start, std::uint64_t bytes) {
  std::unique_lock guard(impl_->lock);
  impl_->on_chip_free.emplace(round_up(std::max<std::uint64_t>(bytes, 1), kPage),
                              reinterpret_cast<std::uint64_t>(start));
}

bool AddressSpace::touchable(std::uint64_t address, std::uint64_t bytes) const {
  std::shared_lock guard(impl_->lock);
  if (in_global_arena(address)) {
    // The guard after an object is touchable: memcheck reports it, and no harm is done.
    auto next = impl_->objects.upper_bound(address);
    if (next == impl_->objects.begin()) return false;
    const Object& object = *std::prev(next)->second;
    return object.state == ObjectState::live && address + bytes <= object.base + impl_->spans.at(object.base);
  }
  auto next = impl_->registered.upper_bound(address);
  return next != impl_->registered.begin() && std::prev(next)->second->contains(address, bytes);
}

}  // namespace machine
