#include "memory/device_heap.hpp"

#include <algorithm>
#include <new>

#include "memory/address_space.hpp"

namespace machine {
namespace {

// What an allocation occupies of the heap: whole units of 16 bytes, and one for the heap's own records.
constexpr std::uint64_t kUnit = 16;
std::uint64_t charge_of(std::uint64_t bytes) {
  return (std::max<std::uint64_t>(bytes, 1) + kUnit - 1) / kUnit * kUnit + kUnit;
}

}  // namespace

DeviceHeap& DeviceHeap::instance() {
  static auto* const only = new DeviceHeap;  // outlives static destruction, as the address space does
  return *only;
}

void DeviceHeap::begin(std::uint64_t bytes) {
  const std::lock_guard guard(lock_);
  in_use_ = true;
  limit_ = bytes;
}

bool DeviceHeap::in_use() const {
  const std::lock_guard guard(lock_);
  return in_use_;
}

void DeviceHeap::reset() {
  const std::lock_guard guard(lock_);
  in_use_ = false;
  taken_ = 0;
}

const Object* DeviceHeap::allocate(std::uint64_t bytes, std::uint32_t align, std::uint64_t operation) {
  const std::lock_guard guard(lock_);
  if (bytes > limit_ || charge_of(bytes) > limit_ - taken_) return nullptr;
  const Object* object = AddressSpace::instance().allocate_in_heap(bytes, align, operation);
  if (object == nullptr) throw std::bad_alloc();
  taken_ += charge_of(bytes);
  return object;
}

DeviceHeap::Standing DeviceHeap::standing(std::uint64_t address) const {
  const Object* object = AddressSpace::instance().heap_object(address);
  if (object == nullptr) return Standing::foreign;
  if (object->base != address) return Standing::inside;
  return object->state == ObjectState::live ? Standing::live : Standing::freed;
}

void DeviceHeap::release(std::uint64_t address, std::uint64_t operation) {
  const std::lock_guard guard(lock_);
  if (const Object* object = AddressSpace::instance().release(address, operation)) taken_ -= charge_of(object->size);
}

}  // namespace machine
