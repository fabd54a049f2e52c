#include "runtime/host_seal.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>
#include <vector>

#include "memory/address_space.hpp"
#include "runtime/host_guard.hpp"
#include "runtime/options.hpp"
#include "runtime/session.hpp"

namespace machine::runtime {
namespace {

constexpr std::uint64_t kPage = 4096;
constexpr std::size_t kSeals = 64;
constexpr std::uint64_t kSmallPinnedBytes = 64 << 10;

// The handler reads this without a lock, so it is a fixed table of atomics.
struct Seal {
  std::atomic<std::uint64_t> begin{0}, end{0};  // pages; end 0: not in use
  std::atomic<std::uint64_t> touched{0};        // first address that the host used
  std::atomic<bool> written{false};
  std::atomic<bool> closed{false};
  TaskPtr task;
};

Seal* seals() {
  static auto* const table = new Seal[kSeals];
  return table;
}

void close(const Seal& seal) {
  const std::uint64_t begin = seal.begin;
  mprotect(reinterpret_cast<void*>(begin), seal.end - begin, PROT_NONE);
}

void open(const Seal& seal) {
  const std::uint64_t begin = seal.begin;
  if (!unguard_pages(begin, seal.end))
    mprotect(reinterpret_cast<void*>(begin), seal.end - begin, PROT_READ | PROT_WRITE);
}

// The pages of the object that hold no byte outside the range; of small pinned memory, those that hold any of it. Bytes
// of the last page behind an object of the arena are nobody's.
void sealable(const Object& object, std::uint64_t begin, std::uint64_t end, std::uint64_t& from, std::uint64_t& to) {
  const std::uint64_t object_end = object.base + object.size;
  if (object.kind == ObjectKind::pinned && object.size <= kSmallPinnedBytes && object.base % kPage == 0) {
    from = begin & ~(kPage - 1);
    to = (end + kPage - 1) & ~(kPage - 1);
    return;
  }
  from = (begin + kPage - 1) & ~(kPage - 1);
  to = object.kind != ObjectKind::registered && end == object_end ? (end + kPage - 1) & ~(kPage - 1)
                                                                  : end & ~(kPage - 1);
}

void seal_range(std::uint64_t address, std::uint64_t bytes, const TaskPtr& task) {
  const Object* object = AddressSpace::instance().find(address);
  if (!object || !object->contains(address, bytes)) return;
  if (object->kind != ObjectKind::pinned && object->kind != ObjectKind::registered &&
      object->kind != ObjectKind::managed)
    return;
  std::uint64_t from, to;
  sealable(*object, address, address + bytes, from, to);
  if (from >= to) return;
  for (std::size_t i = 0; i < kSeals; ++i) {
    Seal& seal = seals()[i];
    if (seal.end != 0) continue;
    seal.begin = from;
    seal.task = task;
    seal.touched = 0;
    seal.written = false;
    seal.end = to;
    seal.closed = true;
    if (!schedule().running() || !guard_pages(from, to)) close(seal);
    return;
  }
}

// What a kernel is given the address of, it may write. Not large pinned memory: a program may well read a file into one
// half of it while a kernel works on the other.
void seal_arguments(const KernelWork& kernel, const TaskPtr& task) {
  for (std::size_t at = 0; at + sizeof(std::uint64_t) <= kernel.params.size(); at += sizeof(std::uint64_t)) {
    std::uint64_t word;
    std::memcpy(&word, kernel.params.data() + at, sizeof word);
    const Object* object = AddressSpace::instance().find(word);
    if (!object || object->state != ObjectState::live) continue;
    const bool small = object->kind == ObjectKind::pinned && object->size <= kSmallPinnedBytes;
    if (small || object->kind == ObjectKind::managed) seal_range(object->base, object->size, task);
  }
}

bool follows(const Task& task, const Task* earlier) {
  std::vector<const Task*> stack{&task}, seen;
  while (!stack.empty()) {
    const Task* at = stack.back();
    stack.pop_back();
    if (at == earlier) return true;
    if (std::find(seen.begin(), seen.end(), at) != seen.end()) continue;
    seen.push_back(at);
    for (const TaskPtr& before : at->after) stack.push_back(before.get());
  }
  return false;
}

}  // namespace

void seal_destination(const Work& work, const TaskPtr& task) {
  if (!options().has_tool("racecheck") || !fault_handler_in_place()) return;
  if (const auto* copy = std::get_if<CopyWork>(&work); copy && copy->extent.height == 1 && copy->extent.depth == 1)
    seal_range(copy->destination.address, copy->extent.width, task);
  if (const auto* kernel = std::get_if<KernelWork>(&work)) seal_arguments(*kernel, task);
  if (const auto* set = std::get_if<SetWork>(&work); set && set->extent.height == 1 && set->extent.depth == 1)
    seal_range(set->destination.address, set->extent.width, task);
}

void hear_seals() {
  for (std::size_t i = 0; i < kSeals; ++i) {
    Seal& seal = seals()[i];
    const std::uint64_t address = seal.end != 0 ? seal.touched.load() : 0;
    if (address == 0) continue;
    const std::uint64_t operation = host_access_operation();
    const AccessKind kind = seal.written ? AccessKind::store : AccessKind::load;
    notify([=](Observer& checks) { checks.host_access(operation, kind, address, 1); });
    seal.end = 0;  // noted once
    seal.task = nullptr;
  }
}

void open_seals() {
  for (std::size_t i = 0; i < kSeals; ++i) {
    Seal& seal = seals()[i];
    if (seal.end != 0 && seal.closed.exchange(false)) open(seal);
  }
  hear_seals();
}

void close_seals() {
  bool opened = false;  // what another seal may lie on as well
  for (std::size_t i = 0; i < kSeals; ++i) {
    Seal& seal = seals()[i];
    if (seal.end == 0 || !seal.task->joined) continue;
    if (seal.closed.exchange(false)) open(seal), opened = true;
    seal.end = 0;
    seal.task = nullptr;
  }
  for (std::size_t i = 0; i < kSeals; ++i) {
    Seal& seal = seals()[i];
    if (seal.end == 0) continue;
    if (!seal.closed.exchange(true) || opened) close(seal);
  }
}

void shield_seals() {
  for (std::size_t i = 0; i < kSeals; ++i) {
    Seal& seal = seals()[i];
    if (seal.end == 0) continue;
    seal.closed = true;
    if (!guard_pages(seal.begin, seal.end)) seal.closed = false;
  }
}

void close_seals_for(const TaskPtr& host_function) {
  for (std::size_t i = 0; i < kSeals; ++i) {
    Seal& seal = seals()[i];
    if (seal.end == 0 || seal.task->done || follows(*seal.task, host_function.get())) continue;
    if (!seal.closed.exchange(true)) close(seal);
  }
}

void report_sealed_accesses(std::uint64_t operation, Observer& checks) {
  for (std::size_t i = 0; i < kSeals; ++i) {
    Seal& seal = seals()[i];
    if (seal.end == 0) continue;
    if (seal.closed.exchange(false)) open(seal);
    if (const std::uint64_t address = seal.touched.exchange(0))
      checks.host_access(operation, seal.written ? AccessKind::store : AccessKind::load, address, 1);
  }
}

bool opened_by_host(std::uint64_t address, bool writes) {
  for (std::size_t i = 0; i < kSeals; ++i) {
    Seal& seal = seals()[i];
    if (address < seal.begin || address >= seal.end) continue;
    std::uint64_t none = 0;
    if (seal.touched.compare_exchange_strong(none, address)) seal.written = writes;
    seal.closed = false;
    open(seal);
    return true;
  }
  // It may have been opened since the fault, by another thread: once more, but not for ever.
  thread_local std::uint64_t before = 0;
  const Object* object = AddressSpace::instance().find(address);
  const bool shared = object && object->state == ObjectState::live &&
                      (object->kind == ObjectKind::pinned || object->kind == ObjectKind::managed ||
                       object->kind == ObjectKind::registered);
  return shared && std::exchange(before, address) != address;
}

}  // namespace machine::runtime
