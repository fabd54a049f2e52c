// Accesses to global memory, marked and remembered.
//
// Where blocks run one after another, an access is marked in bits and written down (access_log.hpp); the first conflict
// of marks replays what was written down into the lines, and from then on each access is compared there at once.
#include "observers/race_global.hpp"

#include <algorithm>

#include "memory/address_space.hpp"
#include "memory/pool.hpp"
#include "observers/extent.hpp"

namespace machine::checks {

namespace {

// Calls f(page, first byte in it, bytes) for the pages of a stretch of memory.
template <class F>
void each_page(PageMap& pages, std::uint64_t address, std::uint64_t bytes, F&& f) {
  for (const std::uint64_t end = address + bytes; address < end;) {
    const std::uint64_t first = address & (kPageBytes - 1), count = std::min(end - address, kPageBytes - first);
    f(pages.at(address), first, count);
    address += count;
  }
}

// Calls f(address, bytes) for the runs of an access; lanes that read what the lane before them reads add none.
template <class F>
void each_stretch(const Access& a, bool reads, F&& f) {
  if (a.shape == Shape::contiguous) return f(a.address[0], std::uint64_t{a.width} * kWarp);
  if (a.shape == Shape::uniform && reads) return f(a.address[a.first_lane()], std::uint64_t{a.width});
  const Mask repeats = reads && std::popcount(a.breaks) > 8 ? repeats_of(a.address) & a.lanes << 1 : 0;
  for (Mask starts = a.breaks & ~repeats; starts != 0; starts &= starts - 1) {
    const unsigned first = static_cast<unsigned>(std::countr_zero(starts));
    const Mask from = kFullMask << first, later = a.breaks & from & (from << 1);
    const Mask run = a.lanes & from & (later == 0 ? kFullMask : (later & -later) - 1);
    f(a.address[first], std::uint64_t{a.width} * static_cast<unsigned>(std::popcount(run)));
  }
}

Trace trace_of(std::uint32_t pc, std::uint32_t block, unsigned warp, Touch touch, std::uint64_t first,
               std::uint64_t count) {
  return {pc,
          block,
          static_cast<std::uint16_t>(first),
          static_cast<std::uint16_t>(first + count - 1),
          static_cast<std::uint8_t>(warp),
          touch};
}

}  // namespace

GlobalRaces::GlobalRaces(const LaunchInfo& launch, RaceReport& report, PageMap& pages, bool check)
    : launch_(launch),
      report_(report),
      pages_(pages),
      check_(check),
      apart_(check && (launch.chunks > 1 || launch.grid.count() == 1) && !launch.communicates &&
             launch.resident_limit <= 1) {}

void GlobalRaces::finish() {
  settle();
  exposed_.clear();
  Pool<Sheet>::instance().release(sheets_);
  sheets_.clear();
  if (log_) Pool<AccessLog>::instance().release({log_});
  log_ = nullptr;
}

void GlobalRaces::mark(const Access& a, const WarpPoint& point, std::uint32_t block, PageMap& pages) {
  mark_as(touch_of(a), a, point, block, pages);
}

void GlobalRaces::mark_as(Touch touch, const Access& a, const WarpPoint& point, std::uint32_t block, PageMap& pages) {
  each_stretch(a, !writes(touch), [&](std::uint64_t address, std::uint64_t bytes) {
    each_page(pages, address, bytes, [&](Page& page, std::uint64_t first, std::uint64_t count) {
      page.marks.set(deed_of(touch), first, count);
      page.trace(trace_of(point.pc, block, point.warp, touch, first, count));
    });
  });
}

void GlobalRaces::mark_read(std::uint64_t address, std::uint64_t bytes, PageMap& pages) {
  each_page(pages, address, bytes,
            [](Page& page, std::uint64_t first, std::uint64_t count) { page.marks.set(Deed::read, first, count); });
}

void GlobalRaces::access(BlockOrder& order, Locks::Held& held, const WarpPoint& point, const Access& a) {
  if (!check_) return mark(a, point, order.block(), pages_);
  Entry entry;
  entry.block = order.block();
  entry.warps = 1u << point.warp;
  entry.stamp = order.warp(point.warp).clock;
  entry.pc = point.pc;
  entry.touch = touch_of(a);
  entry.is_volatile = a.order == Order::volatile_;
  entry.block_scope = strong(entry.touch) && a.scope == Scope::cta;
  narrow_ += entry.block_scope;
  block_scopes_ |= entry.block_scope;
  if (entry.touch == Touch::atomic)
    entry.value_bytes = static_cast<std::uint8_t>(report_.uses().atomic_bytes(point.pc));
  entry.read_only = a.cache == CacheOp::nc;
  held_ = &held;
  if (strong(entry.touch)) {
    listen(a);
    if (a.order == Order::release || a.order == Order::acq_rel) released(order, point.warp, a.lanes, a.scope);
    entry.sequence = ++sequence_;
    record(order, point.warp, a, entry);
    locks_.strong_access(held, order, report_, launch_, point, a);
    return;
  }
  if (held.empty()) [[likely]]
    return record(order, point.warp, a, entry);
  for (Mask rest = a.lanes; rest != 0;) {
    const Locks::Part part = Locks::part_of(held, order, point.warp, rest);
    entry.section = part.section, entry.unfenced = !part.fenced;
    record(order, point.warp, part.lanes == a.lanes ? a : narrowed(a, part.lanes), entry);
    rest &= ~part.lanes;
  }
}

// The kernel's half of a hand-shake with the host, by mapped or managed memory.
void GlobalRaces::listen(const Access& a) {
  if (a.scope != Scope::sys || (a.kind != AccessKind::load && a.kind != AccessKind::atomic)) return;
  asked_host_ = true;
  if (a.order == Order::acquire || a.order == Order::acq_rel) heard_host_ = true;
}

// How the host is to see an access. What follows an acquire of what the host said is talk with the host as well.
Touch GlobalRaces::traced(Touch touch) const {
  if (!heard_host_) return touch;
  return touch == Touch::read ? Touch::strong_read : touch == Touch::write ? Touch::strong_write : touch;
}

void GlobalRaces::async_access(const BlockOrder& order, const WarpPoint& point, const Access& a, Touch touch,
                               Stamp stamp, std::uint8_t value_bytes) {
  if (!check_) return mark_as(touch, a, point, order.block(), pages_);
  Entry entry;
  entry.block = order.block();
  entry.warps = 1u << point.warp;
  entry.stamp = async(touch) ? stamp : order.warp(point.warp).clock;
  entry.pc = point.pc;
  entry.touch = touch;
  if (strong(touch)) entry.sequence = ++sequence_, entry.value_bytes = value_bytes;
  record(order, point.warp, a, entry);
}

void GlobalRaces::record(const BlockOrder& order, unsigned warp, const Access& a, const Entry& entry) {
  const bool met = mark(warp, a, entry);
  if (apart_ && !met && !strong(entry.touch)) return write_down(order, warp, a, entry);
  if (apart_) replay(order);
  report_.next_access();
  reported_ = false;
  compare_and_remember(order, warp, a, entry);
  // What it met was forgotten since, as is done with what lies before a barrier.
  if (entry.read_only && met && !reported_) {
    const unsigned lane = a.first_lane();
    const std::uint64_t address = a.address[lane];
    report_.read_only({entry.block, warp, lane, entry.pc, entry.touch}, nullptr, address,
                      AddressSpace::instance().find(address));
  }
}

// Marks what the access touches. Whether the running block had marked any of it such that it conflicts.
bool GlobalRaces::mark(unsigned warp, const Access& a, const Entry& entry) {
  const bool writing = writes(entry.touch);
  const Deed deed = deed_of(entry.touch);
  bool met = false;
  Page* page = nullptr;
  Marks* marks = nullptr;
  std::uint64_t start = 0;          // of the page
  bool quiet = false;               // nothing in the page can conflict: the usual case of reads
  bool exposes = false;             // the host may read what is written here
  std::uint64_t low = 0, high = 0;  // touched in it
  const auto open = [&](std::uint64_t address) {
    page = &pages_.at(address);
    marks = &sheet_of(*page).marks;
    start = address & ~(kPageBytes - 1);
    quiet = !writing && !marks->any_changed() && !page->marks.changed();
    exposes = writing && page->of_host;
    marks->note(deed);
    low = kPageBytes, high = 0;
  };
  const auto close = [&] { page->trace(trace_of(entry.pc, entry.block, warp, traced(entry.touch), low, high - low)); };
  each_stretch(a, !writing, [&](std::uint64_t address, std::uint64_t bytes) {
    for (;;) {
      if (page == nullptr || address - start >= kPageBytes) {
        if (page != nullptr) close();
        open(address);
      }
      const std::uint64_t first = address - start, count = std::min(bytes, kPageBytes - first);
      low = std::min(low, first), high = std::max(high, first + count);
      if (!quiet) {
        met |= marks->conflicts(writing, first, count);
        blocks_meet_ |= page->marks.conflicts(writing, first, count);
      }
      marks->set_noted(deed, first, count);
      if (exposes) [[unlikely]]
        expose(*page, first, count);
      if (count == bytes) break;
      address += count, bytes -= count;
    }
  });
  if (page != nullptr) close();
  return met;
}

Sheet& GlobalRaces::sheet_of(Page& page) {
  if (page.sheet) return *page.sheet;
  if (sheets_.empty()) Pool<Sheet>::instance().acquire(sheets_, 8);
  page.sheet = sheets_.back();
  sheets_.pop_back();
  open_.push_back(&page);
  return *page.sheet;
}

void GlobalRaces::write_down(const BlockOrder& order, unsigned warp, const Access& a, const Entry& entry) {
  if (!log_) log_ = Pool<AccessLog>::instance().acquire();
  AccessLog& log = *log_;
  log.append(a, warp, entry.pc, entry.touch, entry.stamp);
  if (!log.full()) return;
  // What every thread of the block knew at its last barrier conflicts with nothing in the block any more.
  log.forget([&](const AccessLog::Record& r) {
    if (async(r.touch)) return r.stamp < order.at_barrier().upto[async_actor(r.warp)];
    return r.stamp < order.warp(r.warp).barrier_floor;
  });
  if (log.more_than_half_full()) replay(order);
}

void GlobalRaces::replay(const BlockOrder& order) {
  if (!log_) return;
  log_->replay([&](const AccessLog::Record& r, const Access& a) {
    Entry entry;
    entry.block = order.block();
    entry.warps = 1u << r.warp;
    entry.stamp = r.stamp;
    entry.pc = r.pc;
    entry.touch = r.touch;
    entry.read_only = r.read_only;
    compare_and_remember(order, r.warp, a, entry);
  });
}

void GlobalRaces::block_end() {
  if (apart_) settle();
}

// All that the running blocks touched goes into the pages.
void GlobalRaces::settle() {
  if (log_) log_->clear();
  for (Page* page : open_) {
    page->marks.add(page->sheet->marks);
    page->sheet->clear();
    sheets_.push_back(page->sheet);
    page->sheet = nullptr;
  }
  open_.clear();
}

}  // namespace machine::checks
