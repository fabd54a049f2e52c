#include "undo.hpp"

#include <cstring>

#include "../memory/address_space.hpp"

namespace machine {
namespace {

constexpr unsigned kPageShift = kUndoPageShift;
constexpr std::uint64_t kPage = std::uint64_t{1} << kPageShift;
constexpr std::size_t kMostSpare = 1024;

// State of a page in the running launch: 0 untouched, 1 being copied, 2 saved. Launches do not overlap.
std::atomic<std::uint8_t>* states() {
  static auto* table = reinterpret_cast<std::atomic<std::uint8_t>*>(reserve(kGlobalBytes >> kPageShift));
  return table;
}

}  // namespace

// Launches do not overlap, so the log's own lock covers it. Outlives static destruction, as the address space does.
std::vector<UndoLog::Copy>& UndoLog::spare() {
  static auto* copies = new std::vector<Copy>;
  return *copies;
}

void UndoLog::save_pages(std::uint64_t address, std::uint64_t bytes) {
  if (!in_global_arena(address)) return;  // registered host memory: the host's own pages are not repeated
  for (std::uint64_t page = (address - kArenaBase) >> kPageShift; page <= (address + bytes - 1 - kArenaBase) >> kPageShift; ++page)
    if (states()[page].load(std::memory_order_acquire) != 2) save_page(page);
}

void UndoLog::save_page(std::uint64_t page) {
  auto& state = states()[page];
  std::uint8_t untouched = 0;
  if (!state.compare_exchange_strong(untouched, 1)) {
    while (state.load(std::memory_order_acquire) != 2) {
    }
    return;
  }
  Copy copy;
  {
    std::lock_guard guard(lock_);
    if (auto& copies = spare(); !copies.empty()) copy = std::move(copies.back()), copies.pop_back();
  }
  if (copy == nullptr) copy = std::make_unique_for_overwrite<std::byte[]>(kPage);
  std::memcpy(copy.get(), reinterpret_cast<const void*>(kArenaBase + (page << kPageShift)), kPage);
  {
    std::lock_guard guard(lock_);
    pages_.emplace_back(page, std::move(copy));
  }
  state.store(2, std::memory_order_release);
}

void UndoLog::restore() {
  for (const auto& [page, copy] : pages_) std::memcpy(reinterpret_cast<void*>(kArenaBase + (page << kPageShift)), copy.get(), kPage);
  clear();
}

void UndoLog::clear() {
  for (auto& [page, copy] : pages_) {
    states()[page].store(0, std::memory_order_relaxed);
    if (spare().size() < kMostSpare) spare().push_back(std::move(copy));
  }
  pages_.clear();
}

}  // namespace machine
