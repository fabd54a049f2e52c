// Accesses to the shared memory of a block, checked and recorded.
//
// From the cheapest path to the dearest: a line that nobody has touched since the last barrier of the block is only
// recorded; a read is only written down; the rest is compared with the planes, piece by piece.
#include "observers/race_shared.hpp"

#include <algorithm>

namespace machine::checks {

namespace {

template <class F>
[[gnu::always_inline]] inline void for_lanes(Mask lanes, F&& f) {
  if (lanes == kFullMask) {
    for (unsigned l = 0; l < kWarp; ++l) f(l);
  } else {
    for (; lanes != 0; lanes &= lanes - 1) f(static_cast<unsigned>(std::countr_zero(lanes)));
  }
}

}  // namespace

void SharedRaces::Planes::size(std::size_t cells, std::size_t warps) {
  if (reads.size() < warps) reads.resize(warps);
  if (owner.size() >= cells) return;
  owner.resize(cells), stamp.resize(cells), pc.resize(cells);
  if (!plain.stamp.empty()) plain.owner.resize(cells), plain.stamp.resize(cells), plain.pc.resize(cells);
  for (Reads& r : reads)
    if (!r.stamp.empty()) r.size(cells);
}

void SharedRaces::begin(const BlockInfo& block, const SharedLayout& layout, std::uint32_t dynamic_bytes) {
  base_ = block.shared;
  warps_ = (block.threads + 31) / 32;
  layout_ = &layout;
  dynamic_ = {};
  dynamic_.kind = ObjectKind::dynamic_shared;
  dynamic_.base = layout.dynamic_base;
  dynamic_.size = dynamic_bytes;
  const std::size_t lines = (std::size_t{block.shared_extent} + 127) / 128;
  coarse_.size(lines * 32, warps_);
  if (any_fine_) fine_.clear();
  any_fine_ = false;
  if (line_written_.size() < lines) line_written_.resize(lines), line_read_.resize(lines), line_copier_.resize(lines);
  std::fill_n(line_written_.begin(), lines, 0);  // async marks would outlive their block
  reads_.clear();
  copies_.clear();
}

const Object* SharedRaces::object_at(std::uint64_t offset) const {
  for (const Object& o : layout_->variables)
    if (o.contains(offset)) return &o;
  return dynamic_.contains(offset) ? &dynamic_ : nullptr;
}

SharedRaces::Planes& SharedRaces::fine(std::uint32_t line) {
  any_fine_ = true;
  if (fine_.size() <= line) fine_.resize(std::max<std::size_t>(line + 1, line_written_.size()));
  if (fine_[line]) return *fine_[line];
  auto planes = std::make_unique<Planes>();
  planes->size(128, warps_);
  for (unsigned i = 0; i < 128; ++i) {
    const std::size_t from = std::size_t{line} * 32 + i / 4;
    planes->owner[i] = coarse_.owner[from];
    planes->stamp[i] = coarse_.stamp[from];
    planes->pc[i] = coarse_.pc[from];
  }
  if (const Writes& from = coarse_.plain; !from.stamp.empty()) {
    Writes& to = planes->plain;
    to.owner.resize(128), to.stamp.resize(128), to.pc.resize(128);
    for (unsigned i = 0; i < 128; ++i) {
      const std::size_t cell = std::size_t{line} * 32 + i / 4;
      to.owner[i] = from.owner[cell], to.stamp[i] = from.stamp[cell], to.pc[i] = from.pc[cell];
    }
  }
  for (unsigned w = 0; w < warps_; ++w) {
    const Reads& from = coarse_.reads[w];
    if (from.stamp.empty()) continue;
    Reads& to = planes->reads[w];
    to.size(128);
    for (unsigned i = 0; i < 128; ++i) {
      const std::size_t cell = std::size_t{line} * 32 + i / 4;
      to.stamp[i] = from.stamp[cell], to.lanes[i] = from.lanes[cell], to.pc[i] = from.pc[cell],
      to.fresh[i] = from.fresh[cell];
    }
  }
  fine_[line] = std::move(planes);
  return *fine_[line];
}

void SharedRaces::access(const BlockOrder& order, RaceReport& report, const WarpPoint& point, const Access& a,
                         const Extent& extent) {
  Who who;
  who.warp = who.actor = point.warp;
  who.pc = point.pc;
  who.touch = touch_of(a);
  who.is_volatile = a.order == Order::volatile_;
  who.stamp = order.warp(point.warp).clock;
  who.warp_floor = order.warp(point.warp).warp_floor;
  who.met = order.warp(point.warp).met;
  who.access = &a;
  if (writes(who.touch)) write(order, report, a, extent, who);
  else read(order, report, a, extent, who);
}

void SharedRaces::async_write(const BlockOrder& order, RaceReport& report, const WarpPoint& point,
                              const Access& destination, const Extent& extent) {
  Who who;
  who.warp = point.warp;
  who.actor = async_actor(point.warp);
  who.pc = point.pc;
  who.touch = Touch::write;
  who.stamp = order.async_stamp(point.warp);
  write(order, report, destination, extent, who);
}

// Calls f(line) for the lines that an access touches, some of them more than once. Where lanes lie close together,
// lines between them count as touched.
template <class F>
void SharedRaces::each_line(const Access& a, const Extent& extent, F&& f) const {
  if (extent.bytes() > std::uint64_t{a.width} * kWarp) {
    // Accesses are aligned, and so lie in one line each.
    for_lanes(a.lanes, [&](unsigned lane) { f((a.address[lane] - base_) / 128); });
    return;
  }
  for (std::uint64_t line = (extent.low - base_) / 128; line <= (extent.high - 1 - base_) / 128; ++line) f(line);
}

// Calls f(piece, who) for the parts of an access that lie side by side in one set of planes, and belong to lanes in a
// row.
template <class F>
void SharedRaces::each_piece(const Access& a, Who who, F&& f) {
  if (a.shape == Shape::uniform && !writes(who.touch)) {
    who.uniform = true;
    who.lanes = a.lanes;
    return cut(a.address[a.first_lane()], a.width, who, f);
  }
  a.for_each_run([&](std::uint64_t address, std::uint64_t bytes, Mask lanes) {
    const unsigned first = static_cast<unsigned>(std::countr_zero(lanes));
    const bool consecutive = ((lanes >> first) & ((lanes >> first) + 1)) == 0;
    if (consecutive && std::has_single_bit(a.width)) {
      who.lane0 = first;
      who.shift = static_cast<unsigned>(std::countr_zero(a.width));
      return cut(address, bytes, who, f);
    }
    who.shift = 31;
    for (Mask rest = lanes; rest != 0; rest &= rest - 1, address += a.width) {
      who.lane0 = static_cast<unsigned>(std::countr_zero(rest));
      cut(address, a.width, who, f);
    }
  });
}

void SharedRaces::read(const BlockOrder& order, RaceReport& report, const Access& a, const Extent& extent,
                       const Who& who) {
  const Stamp floor = order.warp(who.warp).barrier_floor;
  if (reads_floor_ != floor) reads_.clear(), reads_floor_ = floor;
  Stamp written = 0;
  each_line(a, extent, [&](std::uint64_t line) {
    written = std::max(written, written_at(order, line));
    line_read_[line] = floor;
  });
  if (written >= floor) {
    bring_in_copies(order);
    report.next_access();
    if (!past_uniform(order, a, who))
      each_piece(a, who, [&](const Piece& at, const Who& each) { check_writes(order, report, at, each); });
  }
  reads_.append(a, who.warp, who.pc, who.touch, who.stamp, who.warp_floor, who.met);
  if (reads_.full()) bring_in_copies(order), bring_in_reads();
}

// A word or some that all lanes read: whether its writers are known to the whole warp, the usual case where a warp
// reads what it wrote itself before a __syncwarp.
bool SharedRaces::past_uniform(const BlockOrder& order, const Access& a, const Who& who) const {
  if (a.shape != Shape::uniform || a.width % 4 != 0 || any_fine_) return false;
  const auto& upto = order.warp(who.warp).common.now.own.upto;
  const std::uint64_t cell = (a.address[a.first_lane()] - base_) / 4;
  std::uint32_t open = 0;
  for (std::uint64_t i = cell; i < cell + a.width / 4; ++i)
    open |= coarse_.stamp[i] >= upto[coarse_.owner[i] >> 5 & 63] ? 1u : 0u;
  return open == 0;
}

void SharedRaces::write(const BlockOrder& order, RaceReport& report, const Access& a, const Extent& extent,
                        const Who& who) {
  const Stamp floor = order.warp(who.warp).barrier_floor;
  Stamp written = 0, read = 0;
  each_line(a, extent, [&](std::uint64_t line) {
    written = std::max(written, written_at(order, line));
    read = std::max(read, line_read_[line]);
  });
  if (std::max(written, read) < floor && write_apart(order, a, extent, who)) return;
  bring_in_copies(order);
  if (read >= floor && reads_floor_ == floor) bring_in_reads();
  report.next_access();
  each_piece(a, who, [&](const Piece& at, const Who& each) {
    check_writes(order, report, at, each);
    if (newest(line_read_, at) >= floor) check_reads(order, report, at, each);
    if (strong(each.touch)) keep_plain(at, floor);
    record_write(at, each);
  });
}

// Records a write to lines that nobody has touched since the last barrier, of whole words. False: not possible, because
// lanes write the same bytes, or parts of words.
bool SharedRaces::write_apart(const BlockOrder& order, const Access& a, const Extent& extent, const Who& who) {
  if (a.width % 4 != 0 || any_fine_) return false;
  if (who.actor >= 32 && fills(a, extent)) {
    if (copies_.full()) bring_in_copies(order);
    copies_.append(a, who.warp, who.pc, who.touch, who.stamp);
  } else if (a.shape == Shape::contiguous) {
    each_piece(a, who, [&](const Piece& at, const Who& each) { record_write(at, each); });
  } else if (!write_lanes(a, who)) {
    return false;
  }
  mark_lines(a, extent, who);
  return true;
}

// After a write to lines that nobody else has written since the last barrier.
void SharedRaces::mark_lines(const Access& a, const Extent& extent, const Who& who) {
  const bool async = who.actor >= 32;
  each_line(a, extent, [&](std::uint64_t line) {
    line_written_[line] = async ? kAsyncWritten : who.stamp;
    line_copier_[line] = {async ? who.actor : 0, who.stamp};
  });
}

bool SharedRaces::write_lanes(const Access& a, const Who& who) {
  switch (a.width) {
    case 16: return write_lanes<4>(a, who);
    case 8: return write_lanes<2>(a, who);
    case 4: return write_lanes<1>(a, who);
    default: return false;
  }
}

template <unsigned cells>
bool SharedRaces::write_lanes(const Access& a, const Who& who) {
  std::uint32_t* const owner = coarse_.owner.data();
  std::uint32_t* const stamp = coarse_.stamp.data();
  std::uint32_t* const pcs = coarse_.pc.data();
  const std::uint32_t id = who.actor << 5, pc = who.pc | flags_of(who.touch, who.is_volatile);
  bool rising = true;
  std::uint64_t end = 0;
  for_lanes(a.lanes, [&](unsigned lane) {
    const std::uint64_t cell = (a.address[lane] - base_) / 4;
    rising &= cell >= end;
    end = cell + cells;
    for (unsigned i = 0; i < cells; ++i) owner[cell + i] = id | lane;
    for (unsigned i = 0; i < cells; ++i) stamp[cell + i] = who.stamp;
    for (unsigned i = 0; i < cells; ++i) pcs[cell + i] = pc;
  });
  if (rising) return true;
  // A lane that does not find itself has met another one.
  std::uint32_t lost = 0;
  for_lanes(a.lanes, [&](unsigned lane) {
    const std::uint64_t cell = (a.address[lane] - base_) / 4;
    for (unsigned i = 0; i < cells; ++i) lost |= owner[cell + i] ^ (id | lane);
  });
  if (lost == 0) return true;
  for_lanes(a.lanes, [&](unsigned lane) { std::fill_n(stamp + (a.address[lane] - base_) / 4, cells, 0); });
  return false;
}

// Into the planes, but for copies that everybody knew at the last barrier: their cells may have been written since, and
// what the planes hold of earlier writes lies in the past as well.
void SharedRaces::bring_in_copies(const BlockOrder& order) {
  copies_.replay([&](const AccessLog::Record& r, const Access& a) {
    Who who;
    who.warp = r.warp;
    who.actor = async_actor(r.warp);
    who.pc = r.pc;
    who.touch = r.touch;
    who.stamp = r.stamp;
    if (r.stamp >= order.at_barrier().upto[who.actor]) write_lanes(a, who);
  });
}

void SharedRaces::bring_in_reads() {
  reads_.replay([&](const AccessLog::Record& r, const Access& a) {
    Who who;
    who.warp = who.actor = r.warp;
    who.pc = r.pc;
    who.touch = r.touch;
    who.is_volatile = r.is_volatile;
    who.stamp = r.stamp;
    who.warp_floor = r.warp_floor;
    who.met = r.met;
    each_piece(a, who, [&](const Piece& at, const Who& each) { record_read(at, each); });
  });
}

void SharedRaces::record_read(const Piece& at, const Who& who) {
  Reads& r = at.planes->reads[who.warp];
  const std::size_t cells = at.planes->stamp.size();
  if (r.stamp.empty()) r.size(cells);
  std::uint32_t* stamps = r.stamp.data() + at.first;
  std::uint32_t* lanes = r.lanes.data() + at.first;
  std::uint32_t* pcs = r.pc.data() + at.first;
  std::uint32_t* fresh = r.fresh.data() + at.first;
  const std::uint32_t pc = who.pc | flags_of(who.touch, who.is_volatile);
  for (std::uint32_t i = 0; i < at.count; ++i) {
    const std::uint32_t bit = who.uniform ? who.lanes : 1u << (at.lane(who, i) & 31);
    fresh[i] = (stamps[i] >= who.met ? fresh[i] : 0) | bit;
    lanes[i] = (stamps[i] >= who.warp_floor ? lanes[i] : 0) | bit;
    stamps[i] = who.stamp;
    pcs[i] = pc;
  }
}

void SharedRaces::record_write(const Piece& at, const Who& who) {
  std::uint32_t* owner = at.planes->owner.data() + at.first;
  std::uint32_t* stamps = at.planes->stamp.data() + at.first;
  std::uint32_t* pcs = at.planes->pc.data() + at.first;
  const std::uint32_t id = who.actor << 5, pc = who.pc | flags_of(who.touch, who.is_volatile);
  for (std::uint32_t i = 0; i < at.count; ++i) {
    owner[i] = id | at.lane(who, i);
    stamps[i] = who.stamp;
    pcs[i] = pc;
  }
  for (std::uint32_t l = at.first_line(base_); l <= at.last_line(base_); ++l) {
    line_written_[l] = who.actor >= 32 ? kAsyncWritten : std::max(line_written_[l], who.stamp);
    line_copier_[l] = {};
  }
}

// Before a strong write: the plain writes that it would cover, but for those before the last barrier of the block.
void SharedRaces::keep_plain(const Piece& at, Stamp floor) {
  const Planes& last = *at.planes;
  Writes& plain = at.planes->plain;
  for (std::uint32_t i = at.first; i < at.first + at.count; ++i) {
    if ((last.pc[i] & kStrong) != 0 || last.stamp[i] < floor) continue;
    if (const std::size_t cells = last.stamp.size(); plain.stamp.size() < cells)
      plain.owner.resize(cells), plain.stamp.resize(cells), plain.pc.resize(cells);
    plain.owner[i] = last.owner[i], plain.stamp[i] = last.stamp[i], plain.pc[i] = last.pc[i];
  }
}

Stamp SharedRaces::newest(const std::vector<Stamp>& of_lines, const Piece& at) const {
  Stamp newest = 0;
  for (std::uint32_t l = at.first_line(base_); l <= at.last_line(base_); ++l) newest = std::max(newest, of_lines[l]);
  return newest;
}

// An async copy that everybody knew at the last barrier lies in the past like any other write.
Stamp SharedRaces::copy_settled(const BlockOrder& order, std::uint64_t line) {
  Stamp& written = line_written_[line];
  const Copier& copier = line_copier_[line];
  if (copier.actor != 0 && copier.newest < order.at_barrier().upto[copier.actor])
    written = order.warp(0).barrier_floor - 1;
  return written;
}

// The same for lines that copies of several warps wrote.
void SharedRaces::settle(const BlockOrder& order, const Piece& at) {
  if (at.cell_shift == 0) return;
  const Reach& known = order.at_barrier();
  const std::uint32_t first_line = at.first / 32, last_line = (at.first + at.count - 1) / 32;
  for (std::uint32_t l = first_line; l <= last_line; ++l) {
    if (line_written_[l] != kAsyncWritten || line_copier_[l].actor != 0) continue;
    const std::uint32_t* owner = at.planes->owner.data() + std::size_t{l} * 32;
    const std::uint32_t* stamp = at.planes->stamp.data() + std::size_t{l} * 32;
    std::uint32_t open = 0;
    for (unsigned i = 0; i < 32; ++i) open |= stamp[i] >= known.upto[owner[i] >> 5 & 63] ? 1u : 0u;
    if (open == 0) line_written_[l] = order.warp(0).barrier_floor - 1;
  }
}

}  // namespace machine::checks
