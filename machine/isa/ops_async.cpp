// cp.async: copies from global to shared memory that land when they are waited for.
#include <algorithm>
#include <cstring>

#include "exec/fault.hpp"
#include "exec/fragments.hpp"
#include "exec/mbarrier.hpp"
#include "exec/undefined.hpp"
#include "isa/families.hpp"
#include "isa/memory_decode.hpp"

namespace machine {
namespace {

using u32 = std::uint32_t;
using u64 = std::uint64_t;

template <unsigned Bytes>
void move_filled(const Warp::Copy& c, Mask lanes) {
  for_lanes(lanes, [&](unsigned l) {
    std::memcpy(reinterpret_cast<void*>(c.destination[l]), reinterpret_cast<const void*>(c.source[l]), Bytes);
  });
}

// Moves the bytes of the lanes in `lanes`: what the copy reads, and zeros behind it.
void move(const Warp::Copy& c, Mask lanes) {
  const u32 bytes = c.event.bytes;
  if (lanes == kFullMask && c.event.whole == lanes && c.event.source.shape == Shape::contiguous &&
      c.event.destination.shape == Shape::contiguous) {
    std::memcpy(reinterpret_cast<void*>(c.destination[0]), reinterpret_cast<const void*>(c.source[0]),
                std::size_t{bytes} * kWarp);
    return;
  }
  if ((lanes & ~c.event.whole) == 0)
    return bytes == 16 ? move_filled<16>(c, lanes) : bytes == 8 ? move_filled<8>(c, lanes) : move_filled<4>(c, lanes);
  for_lanes(lanes, [&](unsigned l) {
    auto* to = reinterpret_cast<std::byte*>(c.destination[l]);
    const u32 from = c.source_bytes[l];
    std::memcpy(to, reinterpret_cast<const void*>(c.source[l]), from);
    std::memset(to + from, 0, bytes - from);
  });
}

// Lanes whose source no longer is anybody's.
Mask freed(const Warp::Copy& c, Mask lanes) {
  const Access& from = c.event.source;
  if (const AddressRange range = lanes == from.lanes ? range_of(from) : range_of(from.address, from.width, lanes);
      range.in_arena() && range.live())
    return 0;
  Mask dead = 0;
  for_lanes(lanes, [&](unsigned l) {
    dead |= Mask{c.source_bytes[l] != 0 && in_global_arena(c.source[l]) && !granule_live(c.source[l])} << l;
  });
  return dead;
}

void land(Warp& w, const Inst& i, Warp::Copy& c, Mask lanes, bool waited) {
  lanes &= c.pending;
  if (lanes == 0) return;
  c.pending &= ~lanes;
  Mask good = lanes;
  if (w.observer != nullptr) good &= w.observer->async_land(w.point(i, w.active), c.event, lanes, waited);
  good &= ~freed(c, good);  // since the copy was issued
  ++w.worker->memory_changes;
  w.worker->bytes_loaded += std::uint64_t{c.event.bytes} * static_cast<unsigned>(std::popcount(good));
  move(c, good);
}

void forget_landed(Warp& w) {
  std::size_t kept = 0;
  while (kept < w.copies.size() && w.copies[kept]->pending != 0) ++kept;
  for (std::size_t k = kept; k < w.copies.size(); ++k) {
    if (w.copies[k]->pending == 0) w.free_copies.push_back(std::move(w.copies[k]));
    else w.copies[kept++] = std::move(w.copies[k]);
  }
  w.copies.resize(kept);
}

struct CopyOp {
  std::uint8_t destination_width = 4, source_width = 8;
  u32 bytes = 16;
  Slot source_size = 0;  // register of bytes to read; 0: all
  Slot ignore = 0;       // predicate: read nothing
  Mask ignore_flip = 0;
  std::int64_t destination_offset = 0, source_offset = 0;
  CacheOp cache = CacheOp::ca;
};

// Bytes that each lane reads; the rest of what it writes are zeros. False: some lane may read less than all.
bool read_sizes(const Warp& w, const CopyOp& op, Warp::Copy& c) {
  std::fill(c.source_bytes.begin(), c.source_bytes.end(), op.bytes);
  if (op.source_size != 0) {
    const auto* size = w.at<const u32>(op.source_size);
    for (unsigned l = 0; l < kWarp; ++l) c.source_bytes[l] = std::min(size[l], op.bytes);
  }
  if (op.ignore != 0) {
    const Mask ignored = w.predicate(op.ignore) ^ op.ignore_flip;
    for_lanes(ignored, [&](unsigned l) { c.source_bytes[l] = 0; });
  }
  return op.source_size == 0 && op.ignore == 0;
}

// The copy as the checks see it, and the addresses of both sides.
void form_sides(const Inst& i, Warp& w, const CopyOp& op, Warp::Copy& c, Mask mask) {
  c.event = AsyncCopy{};
  c.event.id = w.block->next_copy++;
  c.event.pc = i.pc;
  c.event.bytes = op.bytes;
  c.event.source_bytes = c.source_bytes.data();
  c.group = w.groups;
  Access &to = c.event.destination, &from = c.event.source;
  to.kind = AccessKind::async_write;
  to.space = Space::shared;
  from.kind = AccessKind::async_read;
  to.width = from.width = op.bytes;
  to.lanes = from.lanes = mask;
  form(w, shared_source(w, i.a, op.destination_width, op.destination_offset), c.destination.data(), to);
  form(w, {i.b, op.source_width, op.source_offset}, c.source.data(), from);
}

// Lanes that may not copy, which are reported: both sides must be aligned and lie where they may be touched; exact
// bounds are the checks' business. `reads`: lanes that read something.
Mask refused(const Inst& i, Warp& w, const Warp::Copy& c, Mask mask, Mask reads) {
  const Access &to = c.event.destination, &from = c.event.source;
  const u64 *source = from.address, *destination = to.address;
  const AddressRange room = range_of(to), range = range_of(from);
  const u64 low = c.event.bytes - 1;
  const u64 origin = w.block->info.shared, extent = w.block->info.shared_extent;
  Mask misaligned = 0, outside = 0, bad_source = 0;
  if (((range.bits | room.bits) & low) != 0) {
    misaligned = mask & mask_of([=](unsigned l) { return ((source[l] | destination[l]) & low) != 0; });
    address_fault(i, w, ((source[std::countr_zero(misaligned)] & low) != 0) ? from : to, misaligned,
                  Fault::misaligned_address);
  }
  if (room.first < origin || room.last - origin >= extent) {
    outside = mask & mask_of([=](unsigned l) { return destination[l] - origin + low >= extent; });
    if (outside != 0) address_fault(i, w, to, outside, Fault::illegal_address);
  }
  if (reads != 0 && !(range.in_arena() && (w.observer != nullptr || range.live())))
    for_lanes(reads & ~misaligned, [&](unsigned l) {
      const u64 first = source[l];
      if (!in_global_arena(first) && !AddressSpace::instance().touchable(first, c.source_bytes[l]))
        bad_source |= Mask{1} << l;
      else if (w.observer == nullptr && in_global_arena(first) && !granule_live(first)) bad_source |= Mask{1} << l;
    });
  if (bad_source != 0) address_fault(i, w, from, bad_source, Fault::illegal_address);
  return misaligned | outside | bad_source;
}

const Inst* copy(const Inst& i, Warp& w, Mask mask) {
  mask &= w.active;
  if (mask == 0) return &i + 1;
  const CopyOp& op = *static_cast<const CopyOp*>(i.data);
  if (w.follows) [[unlikely]] {
    for (const Slot s : {i.a, i.b}) require_defined(i, w, s, mask, UndefinedUse::address);
    if (op.source_size != 0) require_defined(i, w, op.source_size, mask, UndefinedUse::control);
    if (op.ignore != 0) require_defined(i, w, op.ignore, mask, UndefinedUse::control);
  }
  if (w.free_copies.empty()) w.free_copies.push_back(std::make_unique<Warp::Copy>());
  auto owned = std::move(w.free_copies.back());
  w.free_copies.pop_back();
  Warp::Copy& c = *owned;
  const bool whole = read_sizes(w, op, c);
  form_sides(i, w, op, c, mask);
  const auto& source_bytes = c.source_bytes;
  const Mask reads = whole ? mask : mask & mask_of([&](unsigned l) { return source_bytes[l] != 0; });
  const Mask bad = refused(i, w, c, mask, reads);
  if (w.stop == Stop::aborted) return nullptr;
  if (bad != 0) {
    mask &= ~bad;
    if (mask == 0) {
      w.free_copies.push_back(std::move(owned));
      return &i + 1;
    }
    c.event.destination.lanes = c.event.source.lanes = mask;
    classify(c.event.destination), classify(c.event.source);
  }
  if (!w.block->mbarriers.empty()) [[unlikely]]
    check_overwritten(w, i, mask, c.event.destination.address, op.bytes);
  c.event.lanes = c.pending = mask;
  c.event.whole = whole ? mask : mask & mask_of([&](unsigned l) { return source_bytes[l] == op.bytes; });
  if (w.observer != nullptr) w.observer->async_issue(w.point(i, mask), c.event);
  w.copies.push_back(std::move(owned));
  if (!w.worker->options->late_copies) {
    land(w, i, *w.copies.back(), mask, false);
    forget_landed(w);
  }
  return &i + 1;
}

const Inst* commit(const Inst& i, Warp& w, Mask mask) {
  mask &= w.active;
  if (mask == 0) return &i + 1;
  for (unsigned l = 0; l < kWarp; ++l) w.groups[l] += mask >> l & 1;
  if (w.observer != nullptr) w.observer->async_commit(w.point(i, mask));
  return &i + 1;
}

// Lands every group but the newest `imm`; extra: wait_all, which includes copies of no group.
const Inst* wait(const Inst& i, Warp& w, Mask mask) {
  mask &= w.active;
  if (mask == 0) return &i + 1;
  const u32 left = static_cast<u32>(i.imm);
  const bool all = i.extra != 0;
  for (auto& c : w.copies) {
    Mask due = mask & c->pending;
    if (!all && due != 0) {
      const auto &group = c->group, &groups = w.groups;
      due &= mask_of([&](unsigned l) { return group[l] + left < groups[l]; });
    }
    land(w, i, *c, due, true);
  }
  forget_landed(w);
  if (w.observer != nullptr) w.observer->async_wait(w.point(i, mask), all ? 0 : left);
  return &i + 1;
}

void copy_decode(Decoder& d) {
  CopyOp op;
  const int cache = d.accept_one({"ca", "cg"});
  if (cache < 0) d.fail("needs .ca or .cg");
  op.cache = cache == 0 ? CacheOp::ca : CacheOp::cg;
  bool to_shared = false;
  for (const auto space : {"shared", "shared::cta"}) to_shared |= d.accept(space);
  if (!to_shared || !d.accept("global")) d.fail("needs .shared.global");
  const bool hint = d.accept("L2::cache_hint");
  d.accept_one({"L2::64B", "L2::128B", "L2::256B"});
  d.end(3, 5);
  op.bytes = d.immediate(2);
  if (op.bytes != 16 && (cache == 1 || (op.bytes != 4 && op.bytes != 8))) d.fail("copies 4, 8 or 16 bytes (.cg: 16)");
  std::size_t at = 3;
  const std::size_t last = d.count() - (hint ? 1 : 0);
  if (at < last) {
    Operand o = d.operand(at);
    bool predicate = o.negated;
    if (o.kind == Operand::name) {
      const Variable* v = d.find(o.text);
      predicate = v != nullptr && v->kind == Variable::reg && v->bytes == 0;
    }
    if (predicate) {
      op.ignore_flip = o.negated ? kFullMask : 0;
      o.negated = false;
      op.ignore = d.predicate_source(o);
    } else {
      op.source_size = d.source(o, Type::u32);
    }
    ++at;
  }
  if (at != last) d.fail("one operand too many");
  if (hint) d.source(at, Type::b64);
  const auto destination = d.address(0), source = d.address(1);
  Via shared = Via::shared, global = Via::global;
  check_named_space(d, destination, shared);
  check_named_space(d, source, global);
  op.destination_width = static_cast<std::uint8_t>(destination.width);
  op.source_width = static_cast<std::uint8_t>(source.width);
  op.destination_offset = destination.offset;
  op.source_offset = source.offset;
  if (op.source_width != 8) d.fail("a 32-bit address register");
  const void* data = d.keep_value(op);
  Inst& i = d.emit(copy);
  i.a = destination.base, i.b = source.base, i.data = data;
}

void cp(Decoder& d) {
  const bool reduces = d.accept("reduce");
  if (!d.accept("async")) d.fail("needs .async");
  if (d.accept("bulk")) return reduces ? decode_bulk_reduce(d) : decode_bulk(d);
  if (reduces) d.fail("needs .bulk");
  if (d.accept("commit_group")) {
    d.end(0);
    d.emit(commit);
    return;
  }
  if (d.accept("wait_group")) {
    d.end(1);
    const u32 n = d.immediate(0);
    d.emit(wait).imm = n;
    return;
  }
  if (d.accept("wait_all")) {
    d.end(0);
    d.emit(wait).extra = 1;
    return;
  }
  if (d.accept("mbarrier")) return decode_async_arrive(d);
  copy_decode(d);
}

}  // namespace

void land_all(Warp& w, const Inst& i, bool waited) {
  // Copies that an mbarrier tracks are waited for through it, whatever becomes of the thread that issued them.
  std::uint64_t tracked = 0;
  for (const auto& a : w.block->async_arrivals)
    if (a.warp == &w) tracked = std::max(tracked, a.before);
  for (auto& c : w.copies) {
    if (c->event.id < tracked) continue;
    if (!waited && c->pending != 0) report_fault(i, w, c->pending, Fault::async_not_waited);
    land(w, i, *c, kFullMask, waited);
  }
  forget_landed(w);
}

void land_before(Warp& w, const Inst& i, std::uint64_t id, Mask lanes) {
  for (auto& c : w.copies)
    if (c->event.id < id) land(w, i, *c, lanes, true);
  forget_landed(w);
}

std::span<const Opcode> async_opcodes() {
  static const Opcode table[] = {{"cp", cp, InstructionClass::async_copy}};
  return table;
}

}  // namespace machine
