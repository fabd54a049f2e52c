#include "observers/pages.hpp"

#include <algorithm>
#include <utility>

#include "observers/pool.hpp"

namespace machine::checks {

void Page::trace_anew(const Trace& touched) {
  for (unsigned i = 0; i < trace_count; ++i) {
    if (traces[i].pc != touched.pc || traces[i].touch != touched.touch) continue;
    recent_trace = static_cast<std::uint8_t>(i);
    return widen(traces[i], touched);
  }
  if (trace_count == traces.size()) return;
  recent_trace = trace_count;
  traces[trace_count++] = touched;
}

void Page::clear() {
  sheet = nullptr;
  marks.clear();
  undefined.reset();
  trace_count = recent_trace = 0;
}

PageMap::PageMap(PageMap&& other) noexcept { *this = std::move(other); }
PageMap& PageMap::operator=(PageMap&& other) noexcept {
  std::swap(table_, other.table_);
  std::swap(pages_, other.pages_);
  std::swap(spare_, other.spare_);
  std::swap(recent_, other.recent_);
  return *this;
}

PageMap::~PageMap() {
  for (Page* page : pages_) page->clear();
  pages_.insert(pages_.end(), spare_.begin(), spare_.end());
  Pool<Page>::instance().give(pages_);
}

std::size_t PageMap::place(std::uint64_t number) const {
  std::size_t at = (number * 0x9e3779b97f4a7c15ULL) >> 32 & (table_.size() - 1);
  while (table_[at] && table_[at]->number != number) at = (at + 1) & (table_.size() - 1);
  return at;
}

Page* PageMap::find(std::uint64_t number) const { return table_.empty() ? nullptr : table_[place(number)]; }

Page& PageMap::find_or_make(std::uint64_t number) {
  if (Page* known = find(number)) return *known;
  if (spare_.empty()) Pool<Page>::instance().take(spare_, std::clamp<std::size_t>(pages_.size(), 4, 64));
  Page* page = spare_.back();
  spare_.pop_back();
  page->number = number;
  insert(page);
  return *page;
}

void PageMap::insert(Page* page) {
  if ((pages_.size() + 1) * 2 > table_.size()) grow();
  table_[place(page->number)] = page;
  pages_.push_back(page);
}

void PageMap::grow() {
  table_.assign(std::max<std::size_t>(64, table_.size() * 2), nullptr);
  for (Page* page : pages_) table_[place(page->number)] = page;
}

std::vector<Page*> PageMap::sorted() const {
  std::vector<Page*> pages = pages_;
  std::sort(pages.begin(), pages.end(), [](const Page* a, const Page* b) { return a->number < b->number; });
  return pages;
}

bool PageMap::absorb(PageMap& other) {
  bool apart = true;
  std::vector<Page*> merged;
  for (Page* page : other.pages_) {
    Page* mine = find(page->number);
    if (!mine) {
      insert(page);
      continue;
    }
    apart = apart && !mine->marks.meets(page->marks);
    mine->marks.add(page->marks);
    for (unsigned i = 0; i < page->trace_count; ++i) mine->trace(page->traces[i]);
    if (page->undefined) {
      if (!mine->undefined) mine->undefined = std::make_unique<Marks::Words>();
      for (unsigned w = 0; w < Marks::kWords; ++w) (*mine->undefined)[w] |= (*page->undefined)[w];
    }
    merged.push_back(page);
  }
  for (Page* page : merged) page->clear();
  Pool<Page>::instance().give(merged);
  other.pages_.clear();
  other.table_.clear();
  other.recent_ = {};
  return apart;
}

}  // namespace machine::checks
