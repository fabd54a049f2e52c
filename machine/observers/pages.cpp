#include "observers/pages.hpp"

#include <algorithm>
#include <mutex>
#include <utility>

namespace machine::checks {

namespace {

constexpr std::size_t kSlab = 64;

struct Pool {
  std::mutex lock;
  std::vector<std::unique_ptr<Page[]>> slabs;
  std::vector<Page*> free;
};
Pool& pool() {
  static Pool& instance = *new Pool;  // outlives every observer
  return instance;
}

Page* take_page() {
  Page* page = nullptr;
  {
    Pool& p = pool();
    const std::lock_guard hold(p.lock);
    if (p.free.empty()) {
      p.slabs.push_back(std::make_unique<Page[]>(kSlab));
      for (std::size_t i = kSlab; i-- > 0;) p.free.push_back(&p.slabs.back()[i]);
    }
    page = p.free.back();
    p.free.pop_back();
  }
  return page;
}

}  // namespace

void Page::trace(std::uint32_t pc, std::uint32_t block, unsigned warp, Touch touch, std::uint64_t first, std::uint64_t last) {
  for (unsigned i = 0; i < trace_count; ++i) {
    Trace& t = traces[i];
    if (t.pc != pc || t.touch != touch) continue;
    t.first = std::min<std::uint16_t>(t.first, static_cast<std::uint16_t>(first));
    t.last = std::max<std::uint16_t>(t.last, static_cast<std::uint16_t>(last));
    return;
  }
  if (trace_count == traces.size()) return;
  traces[trace_count++] = {pc, block, static_cast<std::uint16_t>(first), static_cast<std::uint16_t>(last),
                           static_cast<std::uint8_t>(warp), touch};
}

void Page::clear() {
  read.fill(0), written.fill(0), atomic.fill(0);
  undefined.reset();
  for (Line& line : lines) {
    line.first.bytes = 0;
    line.more.reset();
    line.touched = 0;
    line.prune_at = 8;
  }
  trace_count = 0;
}

PageMap::PageMap(PageMap&& other) noexcept { *this = std::move(other); }
PageMap& PageMap::operator=(PageMap&& other) noexcept {
  std::swap(table_, other.table_);
  std::swap(count_, other.count_);
  std::swap(recent_, other.recent_);
  return *this;
}

PageMap::~PageMap() {
  if (count_ == 0) return;
  for (Page* page : table_)
    if (page) page->clear();
  Pool& p = pool();
  const std::lock_guard hold(p.lock);
  for (Page* page : table_)
    if (page) p.free.push_back(page);
}

std::size_t PageMap::place(std::uint64_t number) const {
  std::size_t at = (number * 0x9e3779b97f4a7c15ULL) >> 32 & (table_.size() - 1);
  while (table_[at] && table_[at]->number != number) at = (at + 1) & (table_.size() - 1);
  return at;
}

Page* PageMap::find(std::uint64_t number) const { return table_.empty() ? nullptr : table_[place(number)]; }

Page& PageMap::find_or_make(std::uint64_t number) {
  if ((count_ + 1) * 2 > table_.size()) grow();
  Page*& slot = table_[place(number)];
  if (!slot) {
    slot = take_page();
    slot->number = number;
    ++count_;
  }
  return *slot;
}

void PageMap::grow() {
  std::vector<Page*> old = std::exchange(table_, std::vector<Page*>(std::max<std::size_t>(64, table_.size() * 2)));
  for (Page* page : old)
    if (page) table_[place(page->number)] = page;
}

std::vector<Page*> PageMap::sorted() const {
  std::vector<Page*> pages;
  pages.reserve(count_);
  for (Page* page : table_)
    if (page) pages.push_back(page);
  std::sort(pages.begin(), pages.end(), [](const Page* a, const Page* b) { return a->number < b->number; });
  return pages;
}

}  // namespace machine::checks
