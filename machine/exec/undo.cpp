#include "exec/undo.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>

#include "memory/address_space.hpp"

namespace machine {
namespace {

constexpr unsigned kPageShift = kUndoPageShift;
constexpr std::uint64_t kPage = std::uint64_t{1} << kPageShift;
constexpr std::size_t kMostSpare = 1024;
constexpr unsigned kAtOnce = 16;

// State of a page in the running launch: 0 untouched, 1 being copied, 2 saved. Launches do not overlap.
std::atomic<std::uint8_t>* states() {
  static auto* table = reinterpret_cast<std::atomic<std::uint8_t>*>(reserve(kGlobalBytes >> kPageShift));
  return table;
}

// Copies of earlier launches, whose memory is used again.
struct Spare {
  std::mutex lock;
  std::vector<std::unique_ptr<std::byte[]>> copies;
  static Spare& instance() {
    static auto* spare = new Spare;  // outlives static destruction, as the address space does
    return *spare;
  }
};

}  // namespace

void UndoLog::save_pages(std::uint64_t address, std::uint64_t bytes) {
  if (!in_global_arena(address)) {  // registered host memory: the host's own pages are not repeated
    outside_ = true;
    return;
  }
  for (std::uint64_t page = (address - kArenaBase) >> kPageShift;
       page <= (address + bytes - 1 - kArenaBase) >> kPageShift; ++page)
    if (states()[page].load(std::memory_order_acquire) != 2) save_page(page);
}

void UndoLog::take_spare() {
  Spare& spare = Spare::instance();
  const std::lock_guard guard(spare.lock);
  for (unsigned n = 0; n < kAtOnce && !spare.copies.empty(); ++n) {
    room_.push_back(std::move(spare.copies.back()));
    spare.copies.pop_back();
  }
  while (room_.empty()) room_.push_back(std::make_unique_for_overwrite<std::byte[]>(kPage));
}

void UndoLog::save_page(std::uint64_t page) {
  auto& state = states()[page];
  std::uint8_t untouched = 0;
  if (!state.compare_exchange_strong(untouched, 1)) {
    while (state.load(std::memory_order_acquire) != 2) {
    }
    return;
  }
  if (room_.empty()) take_spare();
  std::memcpy(room_.back().get(), reinterpret_cast<const void*>(kArenaBase + (page << kPageShift)), kPage);
  pages_.emplace_back(page, std::move(room_.back()));
  room_.pop_back();
  state.store(2, std::memory_order_release);
}

void UndoLog::restore() {
  for (const auto& [page, copy] : pages_)
    std::memcpy(reinterpret_cast<void*>(kArenaBase + (page << kPageShift)), copy.get(), kPage);
  clear();
}

void UndoLog::exchange() {
  for (auto& [page, copy] : pages_) {
    auto* now = reinterpret_cast<std::byte*>(kArenaBase + (page << kPageShift));
    std::swap_ranges(now, now + kPage, copy.get());
    states()[page].store(0, std::memory_order_relaxed);
  }
}

bool UndoLog::wrote_host_memory() const {
  return std::any_of(pages_.begin(), pages_.end(), [](const auto& saved) {
    const Object* object = granule_object(kArenaBase + (saved.first << kPageShift));
    return object != nullptr && (object->kind == ObjectKind::pinned || object->kind == ObjectKind::managed);
  });
}

void UndoLog::clear() {
  if (pages_.empty() && room_.empty()) return;
  for (auto& [page, copy] : pages_) {
    states()[page].store(0, std::memory_order_relaxed);
    room_.push_back(std::move(copy));
  }
  pages_.clear();
  Spare& spare = Spare::instance();
  const std::lock_guard guard(spare.lock);
  while (!room_.empty() && spare.copies.size() < kMostSpare) {
    spare.copies.push_back(std::move(room_.back()));
    room_.pop_back();
  }
  room_.clear();
}

}  // namespace machine
