#include "observers/pages.hpp"

#include <algorithm>
#include <utility>

#include "memory/address_space.hpp"
#include "memory/pool.hpp"

namespace machine::checks {

namespace {

constexpr std::size_t kKeptPlaces = 4096;  // larger tables are not kept

}  // namespace

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

const Trace* Page::trace_of(unsigned byte, bool writing) const {
  const auto end = traces.begin() + trace_count;
  const auto at = std::find_if(traces.begin(), end, [&](const Trace& t) {
    return writes(t.touch) == writing && byte >= t.first && byte <= t.last;
  });
  return at == end ? nullptr : &*at;
}

void Page::clear() {
  sheet = nullptr;
  marks.clear();
  undefined.reset(), published.reset();
  of_host = exposed = false;
  trace_count = recent_trace = 0;
}

void PageMap::swap(PageMap& other) {
  std::swap(tables_, other.tables_);
  std::swap(recent_, other.recent_);
}

PageMap::~PageMap() {
  if (!tables_) return;
  Tables& t = *tables_;
  for (Page* page : t.pages) page->clear();
  t.pages.insert(t.pages.end(), t.spare.begin(), t.spare.end());
  Pool<Page>::instance().release(t.pages);
  t.pages.clear(), t.spare.clear();
  if (t.by_number.size() > kKeptPlaces) t.by_number = {};
  std::fill(t.by_number.begin(), t.by_number.end(), Tables::Place{});
  Pool<Tables>::instance().release({tables_});
}

std::size_t PageMap::place(std::uint64_t number) const {
  const std::vector<Tables::Place>& table = tables_->by_number;
  std::size_t at = (number * 0x9e3779b97f4a7c15ULL) >> 32 & (table.size() - 1);
  while (table[at].page && table[at].number != number) at = (at + 1) & (table.size() - 1);
  return at;
}

Page* PageMap::find(std::uint64_t number) const {
  return tables_ && !tables_->by_number.empty() ? tables_->by_number[place(number)].page : nullptr;
}

Page& PageMap::find_or_make(std::uint64_t address) {
  const std::uint64_t number = address >> kPageShift;
  if (Page* known = find(number)) return *known;
  if (!tables_) tables_ = Pool<Tables>::instance().acquire();
  auto& spare = tables_->spare;
  if (spare.empty()) Pool<Page>::instance().acquire(spare, std::clamp<std::size_t>(size(), 4, 64));
  Page* page = spare.back();
  spare.pop_back();
  page->number = number;
  const Object* object = AddressSpace::instance().find(address);
  page->of_host = object && (object->kind == ObjectKind::pinned || object->kind == ObjectKind::managed ||
                             object->kind == ObjectKind::registered);
  insert(page);
  return *page;
}

void PageMap::insert(Page* page) {
  if (!tables_) tables_ = Pool<Tables>::instance().acquire();
  Tables& t = *tables_;
  t.pages.push_back(page);
  if (t.pages.size() * 2 <= t.by_number.size()) {
    t.by_number[place(page->number)] = {page->number, page};
    return;
  }
  t.by_number.assign(std::max<std::size_t>(64, t.by_number.size() * 2), {});
  for (Page* each : t.pages) t.by_number[place(each->number)] = {each->number, each};
}

std::vector<Page*> PageMap::sorted() const {
  std::vector<Page*> pages(all().begin(), all().end());
  std::sort(pages.begin(), pages.end(), [](const Page* a, const Page* b) { return a->number < b->number; });
  return pages;
}

bool PageMap::absorb(PageMap& other) {
  if (!other.tables_) return true;
  if (!tables_) {
    swap(other);
    return true;
  }
  bool apart = true;
  std::vector<Page*> merged;
  for (Page* page : other.all()) {
    Page* mine = find(page->number);
    if (!mine) {
      insert(page);
      continue;
    }
    apart = apart && !mine->marks.meets(page->marks);
    mine->marks.add(page->marks);
    for (unsigned i = 0; i < page->trace_count; ++i) mine->trace(page->traces[i]);
    if (page->undefined) {
      if (!mine->undefined) mine->undefined = std::make_unique<PageBits>();
      for (unsigned w = 0; w < kPageWords; ++w) (*mine->undefined)[w] |= (*page->undefined)[w];
    }
    merged.push_back(page);
  }
  other.tables_->pages = std::move(merged);  // what is left to it
  std::fill(other.tables_->by_number.begin(), other.tables_->by_number.end(), Tables::Place{});
  other.recent_ = {};
  return apart;
}

}  // namespace machine::checks
