// What one chunk of a launch did to global memory, page by page: which bytes it read and wrote, and by which
// instructions.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "observers/marks.hpp"

namespace machine::checks {

struct Sheet;

// A summary for findings between operations: which instruction touched what part of a page.
struct Trace {
  std::uint32_t pc = 0, block = 0;
  std::uint16_t first = 0, last = 0;  // bytes
  std::uint8_t warp = 0;
  Touch touch = Touch::read;
};

struct alignas(64) Page {
  std::uint64_t number = 0;             // address >> kPageShift
  Sheet* sheet = nullptr;               // what the running blocks do here, not yet in `marks`
  std::unique_ptr<PageBits> undefined;  // bytes whose last write stored unwritten data
  // Of memory that the host reads as well: bytes whose last write a release at system scope has followed.
  std::unique_ptr<PageBits> published;
  bool of_host = false;  // the host reads it as well
  bool exposed = false;  // a write since has yet to be released
  std::uint8_t trace_count = 0;
  std::uint8_t recent_trace = 0;
  std::array<Trace, 6> traces;
  KeptMarks marks;

  void trace(const Trace& touched) {
    Trace& t = traces[recent_trace];
    if (recent_trace < trace_count && t.pc == touched.pc && t.touch == touched.touch) return widen(t, touched);
    trace_anew(touched);
  }
  // The first access of that kind that may have touched the byte; nullptr: the summary has none.
  const Trace* trace_of(unsigned byte, bool writing) const;
  void clear();

 private:
  static void widen(Trace& t, const Trace& by) {
    if (by.first < t.first) t.first = by.first;
    if (by.last > t.last) t.last = by.last;
  }
  void trace_anew(const Trace& touched);
};

// Pages by number. Pages, and the tables that find them, come from pools that the process keeps.
class PageMap {
 public:
  PageMap() = default;
  PageMap(PageMap&& other) noexcept { swap(other); }
  PageMap& operator=(PageMap&& other) noexcept {
    swap(other);
    return *this;
  }
  ~PageMap();

  Page& at(std::uint64_t address) {
    const std::uint64_t number = address >> kPageShift;
    Page*& recent = recent_[recent_place(number)];
    if (recent && recent->number == number) return *recent;
    return *(recent = &find_or_make(address));
  }
  Page* find(std::uint64_t number) const;
  std::size_t size() const { return tables_ ? tables_->pages.size() : 0; }
  // In order of first touch, which is the same in every run.
  std::span<Page* const> all() const {
    return tables_ ? std::span<Page* const>(tables_->pages) : std::span<Page* const>();
  }
  std::vector<Page*> sorted() const;

  // Takes over the pages of another chunk. False: both touched the same bytes, at least one of them writing.
  bool absorb(PageMap& other);

 private:
  struct Tables {
    struct Place {
      std::uint64_t number = 0;
      Page* page = nullptr;
    };
    std::vector<Place> by_number;  // open addressing, a power of two long, at most half full
    std::vector<Page*> pages;
    std::vector<Page*> spare;  // from the pool, not used yet
  };
  static std::size_t recent_place(std::uint64_t number) { return (number ^ number >> 6) % 64; }
  Page& find_or_make(std::uint64_t address);
  void insert(Page* page);
  std::size_t place(std::uint64_t number) const;
  void swap(PageMap& other);

  Tables* tables_ = nullptr;  // none: no page
  std::array<Page*, 64> recent_{};
};

}  // namespace machine::checks
