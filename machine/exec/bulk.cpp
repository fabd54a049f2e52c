#include "exec/bulk.hpp"

#include "exec/fault.hpp"

#include <algorithm>
#include <cstring>

#include "exec/fragments.hpp"
#include "exec/mbarrier.hpp"
#include "exec/memory_access.hpp"
#include "exec/undefined.hpp"
#include "exec/undo.hpp"
#include "memory/address_space.hpp"

namespace machine {
namespace {

using u32 = std::uint32_t;
using u64 = std::uint64_t;

std::byte* at(u64 address) { return reinterpret_cast<std::byte*>(address); }

void convert(std::byte* to, u32 bytes, BulkConversion conversion) {
  for (u32 k = 0; k + 4 <= bytes; k += 4) {
    u32 v;
    std::memcpy(&v, to + k, 4);
    const bool subnormal = (v & 0x7f800000u) == 0, finite = (v & 0x7f800000u) != 0x7f800000u;
    if (subnormal) v &= 0x80000000u;
    else if (conversion == BulkConversion::round_tf32 && finite) v = (v + 0x1000u) & ~0x1fffu;
    std::memcpy(to + k, &v, 4);
  }
}

void fill(std::byte* to, u32 bytes, const PendingBulk& b) {
  for (u32 k = 0; k < bytes; k += b.fill_bytes) std::memcpy(to + k, &b.fill, std::min(b.fill_bytes, bytes - k));
}

WarpPoint point_of(const PendingBulk& b) { return b.warp->point(*b.inst, Mask{1} << b.copy.lane); }

void report_landed(const PendingBulk& b, u64 phase) {
  if (Observer* observer = b.warp->observer) observer->bulk_land(point_of(b), b.copy, phase);
}

// A load, or a copy within shared memory.
void land(Warp& waiter, PendingBulk& b) {
  Block& block = *b.warp->block;
  Worker& k = *waiter.worker;
  b.copy.each_chunk([&](u64 from, u64 to, u32 bytes) {
    if (b.copy.registers) from = reinterpret_cast<u64>(b.read.data());
    if (from == 0) return fill(at(to), bytes, b);
    if (b.reduce != nullptr) return b.reduce(at(to), at(from), bytes);
    std::memcpy(at(to), at(from), bytes);
    if (b.conversion != BulkConversion::none) convert(at(to), bytes, b.conversion);
  });
  k.bytes_loaded += b.bytes;
  ++k.memory_changes;
  bool fits = true;
  const u64 phase = transact(block, b.copy.mbarrier, -static_cast<std::int64_t>(b.bytes), fits);
  report_landed(b, phase);
  if (!fits) {
    u64 address[kWarp] = {};
    address[b.copy.lane] = b.copy.mbarrier;
    mbarrier_invalid(*b.warp, *b.inst, Mask{1} << b.copy.lane, address,
                     "more transaction bytes than an mbarrier counts");
  }
}

// First half of a store.
void read_source(PendingBulk& b) {
  if (b.source_read) return;
  b.source_read = true;
  b.copy.each_chunk([&](u64 from, u64, u32 bytes) { b.read.insert(b.read.end(), at(from), at(from) + bytes); });
  report_landed(b, 0);
}

// Second half.
void write_back(PendingBulk& b) {
  Worker& k = *b.warp->worker;
  const std::byte* next = b.read.data();
  b.copy.each_chunk([&](u64, u64 to, u32 bytes) {
    if (k.undo != nullptr) k.undo->save(to, bytes);
    if (b.reduce != nullptr) b.reduce(at(to), next, bytes);
    else std::memcpy(at(to), next, bytes);
    next += bytes;
  });
  k.bytes_stored += b.read.size();
  ++k.memory_changes;
}

u32 thread_of(const PendingBulk& b) { return b.copy.warp * kWarp + b.copy.lane; }

// Stores of `lanes` of the warp for which `due` holds: their sources are read, and unless `read_only`, they are done.
template <class F>
void finish_groups(Warp& w, Mask lanes, bool read_only, F&& due) {
  if (!w.block->bulk) return;
  auto& pending = w.block->bulk->pending;
  for (auto& b : pending) {
    if (b->copy.kind != BulkKind::store || b->warp != &w || (lanes >> b->copy.lane & 1) == 0 || !due(*b)) continue;
    read_source(*b);
    if (read_only) continue;
    write_back(*b);
    b.reset();
  }
  std::erase(pending, nullptr);
}

}  // namespace

void bulk_invalid(const Inst& i, Warp& w, unsigned lane, std::string_view why) {
  if (w.observer == nullptr) return abort_launch(w, i, LaunchStatus::trap, std::string(why), Mask{1} << lane);
  report_fault(i, w, Mask{1} << lane, Fault::bulk_invalid, why);
}

bool bulk_aligned(const Inst& i, Warp& w, unsigned lane, Space space, u64 address, u32 align) {
  if ((address & (align - 1)) == 0) return true;
  u64 addresses[kWarp] = {};
  addresses[lane] = address;
  Access a;
  a.space = space;
  a.width = align;
  a.lanes = Mask{1} << lane;
  a.address = addresses;
  address_fault(i, w, a, a.lanes, Fault::misaligned_address);
  return false;
}

u64 shared_storage(const Warp& w, u64 address, bool generic) {
  return w.block->info.shared + (generic ? address - kSharedWindow : address & 0xffffffffu);
}

bool usable_mbarrier(const Inst& i, Warp& w, unsigned lane, u64 address) {
  u64 addresses[kWarp] = {};
  addresses[lane] = address;
  const u64 offset = address - w.block->info.shared;
  if (offset > w.block->info.shared_extent || w.block->info.shared_extent - offset < 8) {
    Access a;
    a.space = Space::shared;
    a.width = 8;
    a.lanes = Mask{1} << lane;
    a.address = addresses;
    address_fault(i, w, a, a.lanes, Fault::illegal_address);
    return false;
  }
  if (!bulk_aligned(i, w, lane, Space::shared, address, 8)) return false;
  if (phase_of(*w.block, address) != nullptr) return true;
  mbarrier_invalid(w, i, Mask{1} << lane, addresses, "the mbarrier was not initialised");
  return false;
}

void drop_bulk(Warp& w, const PendingBulk& bulk) {
  bool fits = true;
  if (bulk.copy.mbarrier != 0) transact(*w.block, bulk.copy.mbarrier, -std::int64_t{bulk.bytes}, fits);
}

void issue_bulk(const Inst& i, Warp& w, unsigned lane, std::unique_ptr<PendingBulk> bulk) {
  BulkQueue& queue = bulk_queue(*w.block);
  BulkCopy& c = bulk->copy;
  c.id = queue.issued;
  c.pc = i.pc;
  c.warp = w.index;
  c.lane = lane;
  c.pieces = bulk->pieces;
  bulk->warp = &w;
  bulk->inst = &i;
  // What would harm the host is refused here; exact bounds are the checks' business.
  bool bad = false;
  const auto inside = [&](u64 address, u64 bytes, bool shared) {
    if (bad) return;
    const u64 origin = w.block->info.shared, extent = w.block->info.shared_extent;
    bad = shared ? address - origin > extent || extent - (address - origin) < bytes
                 : !AddressSpace::instance().touchable(address, bytes);
    if (!bad) return;
    u64 addresses[kWarp] = {};
    addresses[lane] = address;
    Access a;
    a.space = shared ? Space::shared : Space::global;
    a.width = static_cast<u32>(bytes);
    a.lanes = Mask{1} << lane;
    a.address = addresses;
    address_fault(i, w, a, a.lanes, Fault::illegal_address);
  };
  c.group = queue.closed(w.index * kWarp + lane);
  if (w.observer != nullptr && !w.observer->bulk_issue(w.point(i, Mask{1} << lane), c)) return drop_bulk(w, *bulk);
  c.each_source([&](u64 address, u64 bytes) { inside(address, bytes, c.reads_shared()); });
  if (c.kind != BulkKind::prefetch)
    c.each_destination([&](u64 address, u64 bytes) {
      inside(address, bytes, c.writes_shared());
      u64 addresses[kWarp] = {};
      addresses[lane] = address;
      if (c.writes_shared() && !bad) check_overwritten(w, i, Mask{1} << lane, addresses, bytes);
    });
  if (c.kind == BulkKind::prefetch) return;
  ++queue.issued;
  if (bad) return drop_bulk(w, *bulk);
  PendingBulk& b = *queue.pending.emplace_back(std::move(bulk));
  if (w.worker->options->late_copies) return;
  if (c.mbarrier != 0) {
    land(w, b);
  } else {
    read_source(b);
    write_back(b);
  }
  queue.pending.pop_back();
}

bool land_bulk_of(Warp& waiter, u64 mbarrier) {
  if (!waiter.block->bulk) return false;
  auto& pending = waiter.block->bulk->pending;
  const auto oldest =
      std::find_if(pending.begin(), pending.end(), [&](const auto& b) { return b->copy.mbarrier == mbarrier; });
  if (oldest == pending.end()) return false;
  const auto bulk = std::move(*oldest);
  pending.erase(oldest);
  land(waiter, *bulk);
  return true;
}

const Inst* bulk_commit(const Inst& i, Warp& w, Mask mask) {
  mask &= w.active;
  if (mask == 0) return &i + 1;
  BulkQueue& queue = bulk_queue(*w.block);
  for (auto& b : queue.pending)
    if (b->copy.kind == BulkKind::store && b->warp == &w && (mask >> b->copy.lane & 1) != 0) b->committed = true;
  for_lanes(mask, [&](unsigned l) { ++queue.groups[w.index * kWarp + l]; });
  if (w.observer != nullptr) w.observer->bulk_commit(w.point(i, mask));
  return &i + 1;
}

const Inst* bulk_wait(const Inst& i, Warp& w, Mask mask) {
  mask &= w.active;
  if (mask == 0) return &i + 1;
  const auto left = static_cast<u32>(i.imm);
  const BulkQueue& queue = bulk_queue(*w.block);
  finish_groups(w, mask, i.extra != 0,
                [&](const PendingBulk& b) { return b.committed && b.copy.group + left < queue.closed(thread_of(b)); });
  if (w.observer != nullptr) w.observer->bulk_wait(w.point(i, mask), left, i.extra != 0);
  return &i + 1;
}

void finish_bulk(Warp& w, const Inst& i, Mask lanes) {
  auto& pending = w.block->bulk->pending;
  const bool last = w.block->alive_threads == static_cast<u32>(std::popcount(lanes));
  for (const auto& b : pending) {
    // A store that has read its source needs nobody to wait for it: its writes are done when the grid is.
    const bool goes =
        b->copy.kind == BulkKind::store ? b->warp == &w && (lanes >> b->copy.lane & 1) != 0 && !b->source_read : last;
    if (!goes || w.observer == nullptr) continue;
    FaultEvent e;
    e.fault = Fault::async_not_waited;
    e.lanes = Mask{1} << b->copy.lane;
    const WarpPoint issued = point_of(*b);
    e.other = &issued;
    w.observer->fault(w.point(i, lanes), e);
  }
  finish_groups(w, lanes, false, [](const PendingBulk&) { return true; });
  if (last) pending.clear();
}

}  // namespace machine
