#include "observers/initcheck.hpp"

#include <algorithm>

#include "exec/machine.hpp"
#include "memory/address_space.hpp"
#include "observers/lines.hpp"
#include "observers/memcheck.hpp"

namespace machine::checks {

namespace {

constexpr unsigned kClose = 1024;  // bytes so close together are looked at with what lies between them
enum Rule : std::uint32_t { kUnwritten = 200 };

template <class F>
void each_lane(Mask lanes, F&& f) {
  for (; lanes != 0; lanes &= lanes - 1) f(static_cast<unsigned>(std::countr_zero(lanes)));
}

}  // namespace

Initcheck::Initcheck(const LaunchInfo& launch, Sink& sink, ArenaBits& written)
    : launch_(launch), sink_(sink), written_(written) {
  dynamic_.kind = ObjectKind::dynamic_shared;
  dynamic_.base = launch.kernel->shared().dynamic_base;
  dynamic_.size = launch.dynamic_shared;
}

const Object* Initcheck::variable_at(const WarpPoint& point, std::uint64_t address) const {
  const std::uint64_t offset = address - point.block->shared;
  for (const Object& v : launch_.kernel->shared().variables)
    if (v.contains(offset)) return &v;
  return dynamic_.contains(offset) ? &dynamic_ : nullptr;
}

void Initcheck::block_begin(const BlockInfo& block) {
  if (block.shared_extent != 0) written_.clear(block.shared, block.shared_extent);
}

// Whether memory at `address` is of the kind that starts unwritten.
bool Initcheck::counts(std::uint64_t address) const {
  if (!ArenaBits::covers(address)) return false;
  const Object* object = AddressSpace::instance().find(address);
  return object && object->kind == ObjectKind::global;
}

// One bit a byte for the 64 bytes around `address`. What this chunk has written itself is in its pages.
std::uint64_t Initcheck::written_bits(std::uint64_t address, const PageMap* pages) const {
  const std::uint64_t bits = written_.word(address);
  const Page* page = pages ? pages->find(address >> kPageShift) : nullptr;
  if (!page) return bits;
  const unsigned w = static_cast<unsigned>((address & (kPageBytes - 1)) / 64);
  const std::uint64_t own = page->marks.changed(w) | (page->sheet ? page->sheet->marks.changed(w) : 0);
  return (bits | own) & ~(page->undefined ? (*page->undefined)[w] : 0);
}

bool Initcheck::all_written(std::uint64_t address, std::uint64_t bytes, const PageMap* pages) const {
  if (!any_undefined_ && written_.all(address, bytes)) return true;
  std::uint64_t missing = 0;
  for_each_word(address, bytes, [&](std::uint64_t w, std::uint64_t mask) { missing |= mask & ~written_bits(w * 64, pages); });
  return missing == 0;
}

// Whether all that the lanes touch was written before this chunk. Lanes of aligned accesses lie in one word of bits each.
bool Initcheck::all_written(const Access& a, const Extent& extent) const {
  if (extent.bytes() <= kClose && written_.all(extent.low, extent.bytes())) return true;
  if (a.shape != Shape::scattered) return false;
  const std::uint64_t any = a.address[a.first_lane()], own = (std::uint64_t{1} << a.width) - 1;
  const std::uint64_t* words = written_.words();
#if defined(__AVX512F__)
  const auto all_lanes = [](std::uint64_t v) { return _mm512_set1_epi64(static_cast<long long>(v)); };
  const __m512i base = all_lanes(kArenaBase), first = all_lanes(any), mask = all_lanes(own);
  __mmask8 bad = 0;
  for (unsigned g = 0; g < 4; ++g) {
    const __m512i address = _mm512_mask_loadu_epi64(first, static_cast<__mmask8>(a.lanes >> (8 * g)), a.address + 8 * g);
    const __m512i at = _mm512_sub_epi64(address, base), bit = _mm512_and_epi64(at, all_lanes(63));
    const __m512i bits = _mm512_srlv_epi64(_mm512_i64gather_epi64(_mm512_srli_epi64(at, 6), words, 8), bit);
    bad |= _mm512_cmpneq_epi64_mask(_mm512_and_epi64(bits, mask), mask);
    bad |= _mm512_cmpgt_epi64_mask(bit, all_lanes(64 - a.width));
  }
  return bad == 0;
#else
  bool good = true;
  for (unsigned l = 0; l < kWarp; ++l) {
    const std::uint64_t at = ((a.lanes >> l & 1) != 0 ? a.address[l] : any) - kArenaBase;
    good &= (own & ~(words[at >> 6] >> (at & 63))) == 0 && (at & 63) + a.width <= 64;
  }
  return good;
#endif
}

std::uint64_t Initcheck::holes(std::uint64_t address, unsigned width, const PageMap* pages) const {
  std::uint64_t found = 0;
  for (unsigned b = 0; b < width; ++b) found |= is_written(address + b, pages) ? 0 : std::uint64_t{1} << b;
  return found;
}

// Whether every hole that these bytes are part of is shorter than padding can be.
bool Initcheck::small_hole(const WarpPoint& point, std::uint64_t address, unsigned width, std::uint64_t holes, const PageMap* pages) const {
  for (unsigned b = 0; b < width; ++b) {
    if ((holes >> b & 1) == 0) continue;
    const bool on_chip = address >= kOnChipBase;
    const Object* object = on_chip ? variable_at(point, address + b) : AddressSpace::instance().find(address + b);
    const std::uint64_t origin = on_chip ? point.block->shared : 0;
    std::uint64_t low = address + b, high = low + 1;
    const auto open = [&](std::uint64_t at) { return object && object->contains(at - origin) && !is_written(at, pages); };
    while (high - low < kPadding && open(low - 1)) --low;
    while (high - low < kPadding && open(high)) ++high;
    if (high - low >= kPadding) return false;
  }
  return true;
}

const CopyAnalysis::Move* Initcheck::move_at(std::uint32_t pc) {
  if (!copies_) copies_ = std::make_unique<CopyAnalysis>(*launch_.kernel);
  return copies_->at(pc);
}

void Initcheck::unwritten(const WarpPoint& point, unsigned lane, Space space, unsigned bytes, std::uint64_t address,
                          bool is_copy) {
  if (!sink_.first({kUnwritten + static_cast<std::uint32_t>(space), point.pc, 0, 0})) return;
  report::Finding f;
  f.check = "initcheck";
  f.kind = "Uninitialized " + std::string(space_name(space)) + " memory read of size " + std::to_string(bytes) + " bytes";
  f.message = is_copy ? "the bytes are copied on, and nothing has written them" : "nothing has written these bytes";
  if (space == Space::global) {
    f.address = describe_address(address, AddressSpace::instance().find(address));
  } else if (space == Space::shared) {
    f.address = describe_address(address - point.block->shared, variable_at(point, address));
  } else {
    const auto array = local_array_at(point.frame, address);
    f.address = describe_address(address, array ? &*array : nullptr);
  }
  f.sites.push_back(site_of(launch_, point.block->index, point.warp, lane, point.pc));
  sink_.add(std::move(f));
}

void Initcheck::carry(const WarpPoint& point, const Access& a, unsigned lane, std::uint64_t holes) {
  const CopyAnalysis::Move* move = move_at(point.pc);
  if (!move) return;
  const unsigned size = a.width / a.components;
  for (std::size_t c = 0; c < move->registers.size(); ++c)
    carried_[carried_key(point, move->registers[c])].holes[lane] =
        holes >> (c * size) & (size >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << size) - 1);
}

std::uint64_t Initcheck::carried(const WarpPoint& point, const Access& a, unsigned lane) {
  const CopyAnalysis::Move* move = move_at(point.pc);
  if (!move) return 0;
  const unsigned size = a.width / a.components;
  std::uint64_t found = 0;
  for (std::size_t c = 0; c < move->registers.size(); ++c) {
    const auto at = carried_.find(carried_key(point, move->registers[c]));
    if (at == carried_.end()) continue;
    found |= (at->second.holes[lane] & (size >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << size) - 1)) << (c * size);
  }
  return found;
}

// Loads, and the reading half of atomics, of global and shared memory.
void Initcheck::load(const WarpPoint& point, const Access& a, const Extent& extent, const PageMap* pages) {
  bool clean = true;
  if (a.shape == Shape::uniform) {
    clean = all_written(a.address[a.first_lane()], a.width, pages);
  } else if (any_undefined_ || !all_written(a, extent)) {
    a.for_each_run([&](std::uint64_t address, std::uint64_t bytes, Mask) { clean = clean && all_written(address, bytes, pages); });
  }
  if (clean && carried_.empty()) return;
  const bool is_load = a.kind == AccessKind::load;
  each_lane(a.lanes, [&](unsigned lane) {
    const std::uint64_t address = a.address[lane];
    const std::uint64_t open = clean ? 0 : holes(address, a.width, pages);
    const CopyAnalysis::Move* move = is_load ? move_at(point.pc) : nullptr;
    const bool pure = move && move->pure;
    if (pure && (open == 0 || small_hole(point, address, a.width, open, pages))) return carry(point, a, lane, open);
    if (open == 0) return;
    const unsigned byte = static_cast<unsigned>(std::countr_zero(open));
    unwritten(point, lane, a.space, a.width, address + byte, pure);
  });
}

void Initcheck::mark(std::uint64_t address, std::uint64_t bytes, bool defined, PageMap* pages) {
  if (!pages) return defined ? written_.set(address, bytes) : written_.clear(address, bytes);
  if (defined && !any_undefined_) return;  // the page's own marks say it
  for (std::uint64_t at = address; at < address + bytes; ++at) {
    Page& page = pages->at(at);
    if (defined && !page.undefined) continue;
    if (!page.undefined) page.undefined = std::make_unique<PageBits>();
    std::uint64_t& word = (*page.undefined)[(at & (kPageBytes - 1)) >> 6];
    const std::uint64_t bit = std::uint64_t{1} << (at & 63);
    word = defined ? word & ~bit : word | bit;
  }
  any_undefined_ = any_undefined_ || !defined;
}

void Initcheck::store(const WarpPoint& point, const Access& a, PageMap* pages) {
  if (carried_.empty() || a.kind != AccessKind::store) {
    if (pages && !any_undefined_) return;
    if (a.shape == Shape::uniform) return mark(a.address[a.first_lane()], a.width, true, pages);
    return a.for_each_run([&](std::uint64_t address, std::uint64_t bytes, Mask) { mark(address, bytes, true, pages); });
  }
  each_lane(a.lanes, [&](unsigned lane) {
    const std::uint64_t address = a.address[lane];
    mark(address, a.width, true, pages);
    const std::uint64_t open = carried(point, a, lane);
    for (unsigned b = 0; open != 0 && b < a.width; ++b)
      if ((open >> b & 1) != 0) mark(address + b, 1, false, pages);
  });
}

void Initcheck::global(const WarpPoint& point, const Access& a, const Extent& extent, PageMap& pages) {
  const Object* object = AddressSpace::instance().find(extent.low);
  if (!object || !object->contains(extent.low, extent.bytes())) {
    Mask counted = 0;
    each_lane(a.lanes, [&](unsigned lane) { counted |= counts(a.address[lane]) ? Mask{1} << lane : 0; });
    if (counted == 0) return;
    if (counted != a.lanes) {
      const Access part = narrowed(a, counted);
      return counted_lanes(point, part, extent_of(part), pages);
    }
  } else if (object->kind != ObjectKind::global) {
    return;
  }
  counted_lanes(point, a, extent, pages);
}

void Initcheck::counted_lanes(const WarpPoint& point, const Access& a, const Extent& extent, PageMap& pages) {
  if (a.kind != AccessKind::store) load(point, a, extent, &pages);
  if (a.kind != AccessKind::load) store(point, a, &pages);
}

void Initcheck::shared(const WarpPoint& point, const Access& a, const Extent& extent) {
  if (a.kind != AccessKind::store) load(point, a, extent, nullptr);
  if (a.kind != AccessKind::load) store(point, a, nullptr);
}

void Initcheck::function_entered(const WarpPoint& point) {
  const auto bits = local_.find(local_key(point));
  if (bits == local_.end() || bits->second.block != point.block->index) return;
  auto& written = bits->second.written;
  const std::uint64_t end = std::uint64_t{point.frame->base} + point.frame->layout->bytes;
  for (std::uint64_t at = point.frame->base; at < end && at < written.size(); ++at) written[at] &= ~point.active;
}

void Initcheck::local(const WarpPoint& point, const Access& a) {
  LocalBits& bits = local_[local_key(point)];
  if (bits.block != point.block->index) {
    bits.block = point.block->index;
    std::fill(bits.written.begin(), bits.written.end(), 0);
  }
  std::uint64_t high = 0;
  each_lane(a.lanes, [&](unsigned lane) { high = std::max(high, a.address[lane] + a.width); });
  if (high > std::uint64_t{1} << 24) return;
  if (bits.written.size() < high) bits.written.resize(high + high / 2);
  const bool same = a.shape == Shape::uniform;
  const auto each = [&](auto&& f) {
    if (same) return f(a.address[a.first_lane()], a.lanes);
    each_lane(a.lanes, [&](unsigned lane) { f(a.address[lane], Mask{1} << lane); });
  };
  if (a.kind == AccessKind::store) {
    each([&](std::uint64_t offset, Mask lanes) {
      for (unsigned b = 0; b < a.width; ++b) bits.written[offset + b] |= lanes;
    });
    return;
  }
  each([&](std::uint64_t offset, Mask lanes) {
    Mask missing = 0, partly = 0;
    for (unsigned b = 0; b < a.width; ++b) missing |= lanes & ~bits.written[offset + b], partly |= bits.written[offset + b];
    if (missing == 0) return;
    // A copy of padding: some of the lane's bytes are written, and nothing computes with them.
    const CopyAnalysis::Move* move = move_at(point.pc);
    if (move && move->pure && (missing & ~partly) == 0) return;
    unwritten(point, static_cast<unsigned>(std::countr_zero(missing)), Space::local, a.width, offset, false);
  });
}

void Initcheck::landed(const WarpPoint& point, const AsyncCopy& copy, const Side& source, const Side& destination, PageMap& pages) {
  const auto& [to, room] = destination;
  if (fills(to, room)) written_.set(room.low, room.bytes());
  else to.for_each_run([&](std::uint64_t at, std::uint64_t bytes, Mask) { written_.set(at, bytes); });
  // Whole copies whose sources lie in one object: all lanes at once.
  Mask rest = to.lanes;
  if (const Mask whole = source.access.lanes & rest; whole != 0 && !any_undefined_) {
    const auto& [from, extent] = source;
    const Object* object = AddressSpace::instance().find(extent.low);
    if (object && object->contains(extent.low, extent.bytes()) && (object->kind != ObjectKind::global || all_written(from, extent)))
      rest &= ~whole;
  }
  each_lane(rest, [&](unsigned lane) { landed(point, copy, lane, pages); });
}

void Initcheck::landed(const WarpPoint& point, const AsyncCopy& copy, unsigned lane, PageMap& pages) {
  const std::uint64_t source = copy.source.address[lane], destination = copy.destination.address[lane];
  const std::uint32_t read = copy.source_bytes[lane];
  if (read == 0 || !counts(source) || all_written(source, read, &pages)) return;
  const std::uint64_t open = holes(source, read, &pages);
  if (!small_hole(point, source, read, open, &pages)) {
    WarpPoint issue = point;
    issue.pc = copy.pc;
    return unwritten(issue, lane, Space::global, copy.bytes, source + static_cast<unsigned>(std::countr_zero(open)), true);
  }
  for (unsigned b = 0; b < read; ++b)
    if ((open >> b & 1) != 0) written_.clear(destination + b, 1);
}

}  // namespace machine::checks
