#include "runtime/host_guard.hpp"

#include <sys/mman.h>

#include "memory/address_space.hpp"

namespace machine::runtime {
namespace {

constexpr std::uint64_t kPage = 4096;

// -1 where the processor or the kernel has no protection keys.
int key() {
  static const int allotted = [] {
#ifdef __x86_64__
    return pkey_alloc(0, PKEY_DISABLE_ACCESS);
#else
    return -1;
#endif
  }();
  return allotted;
}

void protect(const Object& object, int with) {
  const std::uint64_t begin = object.base & ~(kPage - 1);
  const std::uint64_t end = (object.base + object.size + kPage - 1) & ~(kPage - 1);
  // May fail when the process has too many mappings; the memory then stays reachable, which harms nobody.
  (void)pkey_mprotect(reinterpret_cast<void*>(begin), end - begin, PROT_READ | PROT_WRITE, with);
}

}  // namespace

void guard_from_host(const Object& object) {
  if (key() >= 0) protect(object, key());
}

void unguard(const Object& object) {
  if (key() >= 0) protect(object, 0);
}

namespace {

bool protect_pages(std::uint64_t begin, std::uint64_t end, int with) {
  return key() >= 0 && pkey_mprotect(reinterpret_cast<void*>(begin), end - begin, PROT_READ | PROT_WRITE, with) == 0;
}

}  // namespace

bool guard_pages(std::uint64_t begin, std::uint64_t end) { return protect_pages(begin, end, key()); }

bool unguard_pages(std::uint64_t begin, std::uint64_t end) { return protect_pages(begin, end, 0); }

DeviceAccess::DeviceAccess() {
  if (key() < 0) return;
  before_ = static_cast<std::uint32_t>(pkey_get(key()));
  pkey_set(key(), 0);
}

DeviceAccess::~DeviceAccess() {
  if (key() >= 0) pkey_set(key(), before_);
}

bool is_guarded(std::uint64_t address) {
  if (key() < 0 || !in_global_arena(address)) return false;
  const Object* object = AddressSpace::instance().find(address);
  return object && object->kind == ObjectKind::global && object->state == ObjectState::live;
}

}  // namespace machine::runtime
