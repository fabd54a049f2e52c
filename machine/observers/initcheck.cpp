#include "observers/initcheck.hpp"

#include <algorithm>

#include "exec/machine.hpp"
#include "memory/address_space.hpp"
#include "observers/each_lane.hpp"
#include "observers/lines.hpp"
#include "observers/memcheck.hpp"

namespace machine::checks {

namespace {

constexpr unsigned kClose = 1024;  // bytes so close together are looked at with what lies between them

}  // namespace

Initcheck::Initcheck(const ChunkContext& context)
    : launch_(context.launch),
      sink_(context.sink),
      written_(context.written),
      kept_(context.kept),
      pages_(context.pages) {
  dynamic_.kind = ObjectKind::dynamic_shared;
  dynamic_.base = launch_.kernel->shared().dynamic_base;
  dynamic_.size = launch_.dynamic_shared;
}

const Object* Initcheck::variable_at(std::uint64_t offset) const {
  for (const Object& v : launch_.kernel->shared().variables)
    if (v.contains(offset)) return &v;
  return dynamic_.contains(offset) ? &dynamic_ : nullptr;
}

void Initcheck::block_begin(const BlockInfo& block) {
  if (block.shared_extent == 0) return;
  written_.clear(block.shared, block.shared_extent);
  const auto inside = [&](std::uint64_t address) { return address - block.shared < block.shared_extent; };
  if (!partial_.empty()) std::erase_if(partial_, [&](const auto& e) { return inside(e.first); });
  if (!stored_.empty()) std::erase_if(stored_, [&](const auto& e) { return inside(e.first << 6); });
}

// Whether memory at `address` is of the kind that starts unwritten.
bool Initcheck::counts(std::uint64_t address) const {
  if (!ArenaBits::covers(address)) return false;
  const Object* object = AddressSpace::instance().find(address);
  return object && begins_unwritten(object->kind);
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
  for_each_word(address, bytes,
                [&](std::uint64_t w, std::uint64_t mask) { missing |= mask & ~written_bits(w * 64, pages); });
  return missing == 0;
}

// Whether all that the lanes touch was written before this chunk. Lanes of aligned accesses lie in one word of bits
// each.
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
    const __m512i address =
        _mm512_mask_loadu_epi64(first, static_cast<__mmask8>(a.lanes >> (8 * g)), a.address + 8 * g);
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

// Whether everything that the access touches is written.
bool Initcheck::clean(const Access& a, const Extent& extent, const PageMap* pages) const {
  if (a.shape == Shape::uniform) return all_written(a.address[a.first_lane()], a.width, pages);
  if (!any_undefined_ && all_written(a, extent)) return true;
  bool all = true;
  a.for_each_run(
      [&](std::uint64_t address, std::uint64_t bytes, Mask) { all = all && all_written(address, bytes, pages); });
  return all;
}

std::uint8_t Initcheck::undefined_byte(std::uint64_t address, const PageMap* pages) const {
  if ((written_bits(address, pages) >> (address & 63) & 1) != 0) return 0;
  if (const auto at = partial_.find(address); at != partial_.end()) return at->second;
  if (const auto at = kept_.partial.find(address); at != kept_.partial.end()) return at->second;
  return 0xff;
}

Origin Initcheck::origin_of(const WarpPoint& point, const Stored& stored) const {
  Origin origin = stored.origin;
  if (stored.block != point.block->index) origin.warp = kNoThread;
  return origin;
}

// Where the undefined byte comes from that lane `lane` reads there: this very place, unless something stored it.
Origin Initcheck::origin_at(const WarpPoint& point, unsigned lane, std::uint64_t address) const {
  if (const auto at = stored_.find(Kept::granule(address)); at != stored_.end()) return origin_of(point, at->second);
  const auto warp = static_cast<std::uint8_t>(point.warp), its_lane = static_cast<std::uint8_t>(lane);
  if (const auto at = kept_.stored.find(Kept::granule(address)); at != kept_.stored.end())
    return {at->second, point.pc, warp, its_lane, Origin::Kind::kept, kept_.origins[at->second].computed};
  // On chip, addresses are distinguished by their offset: the block's storage is used again.
  const std::uint64_t place = address >= kOnChipBase ? kOnChipBase + (address - point.block->shared) : address;
  return {place, point.pc, warp, its_lane, Origin::Kind::memory, false};
}

bool Initcheck::read(const WarpPoint& point, unsigned lane, std::uint64_t address, unsigned bytes, const PageMap* pages,
                     Undefined& to) const {
  std::uint64_t first = 0;
  for (unsigned b = 0; b < bytes; ++b) {
    const std::uint8_t open = undefined_byte(address + b, pages);
    to.bits[lane][b] = open;
    if (open != 0 && first == 0) first = address + b;
  }
  if (first == 0) return false;
  to.origins[lane] = origin_at(point, lane, first);
  return true;
}

void Initcheck::load(const WarpPoint& point, const Access& a, const Extent& extent, const PageMap* pages) {
  if (a.undefined == nullptr || clean(a, extent, pages)) return;
  each_lane(a.lanes, [&](unsigned lane) {
    if (read(point, lane, a.address[lane], a.width, pages, *a.undefined)) a.undefined->lanes |= Mask{1} << lane;
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

// Bytes of which some bits are undefined.
void Initcheck::write(const WarpPoint& point, std::uint64_t address, const std::uint8_t* bits, unsigned bytes,
                      const Origin& origin, PageMap* pages) {
  mark(address, bytes, true, pages);
  bool any = false;
  for (unsigned b = 0; b < bytes; ++b) {
    if (bits[b] == 0) continue;
    mark(address + b, 1, false, pages);
    if (bits[b] != 0xff || kept_.partial.contains(address + b)) partial_[address + b] = bits[b];
    else partial_.erase(address + b);
    if (any && ((address + b) & 63) != 0) continue;
    any = true;
    stored_[Kept::granule(address + b)] = {origin, point.block->index};
  }
}

void Initcheck::store(const WarpPoint& point, const Access& a, PageMap* pages) {
  const Mask open = a.undefined != nullptr ? a.undefined->lanes & a.lanes : 0;
  if (open == 0) [[likely]] {
    if (pages && !any_undefined_) return;
    if (a.shape == Shape::uniform) return mark(a.address[a.first_lane()], a.width, true, pages);
    return a.for_each_run([&](std::uint64_t address, std::uint64_t bytes, Mask) { mark(address, bytes, true, pages); });
  }
  // The last lane wins, as in memory.
  each_lane(a.lanes, [&](unsigned lane) {
    if ((open >> lane & 1) == 0) mark(a.address[lane], a.width, true, pages);
    else write(point, a.address[lane], a.undefined->bits[lane].data(), a.width, a.undefined->origins[lane], pages);
  });
}

// Lane by lane, as they are executed: each gives what it finds and leaves what comes of it and its operand.
void Initcheck::atomic(const WarpPoint& point, const Access& a, const Extent& extent, PageMap* pages) {
  const Mask open = a.undefined != nullptr ? a.undefined->lanes & a.lanes : 0;
  if (open == 0 && clean(a, extent, pages)) return store(point, a, pages);
  Undefined room;
  Undefined& out = a.undefined != nullptr ? *a.undefined : room;
  Mask gives = 0;
  each_lane(a.lanes, [&](unsigned lane) {
    const Mask bit = Mask{1} << lane;
    std::array<std::uint8_t, 32> operand{}, now;
    const Origin origin = out.origins[lane];
    if ((open & bit) != 0) operand = out.bits[lane];
    const bool old = read(point, lane, a.address[lane], a.width, pages, out);
    const unsigned size = a.width / a.components;
    bool any[8] = {};  // by component: each is computed for itself
    for (unsigned b = 0; b < a.width; ++b) any[b / size] |= (old && out.bits[lane][b] != 0) || operand[b] != 0;
    for (unsigned b = 0; b < a.width; ++b) {
      const std::uint8_t before = out.bits[lane][b];
      const Component& data = a.data[b / size];
      const auto value =
          static_cast<std::uint8_t>(data.base != nullptr ? data.base[lane * data.stride + b % size] : std::byte{0});
      switch (a.merge) {
        case Merge::replace: now[b] = operand[b]; break;
        case Merge::and_: now[b] = operand[b] | (before & value); break;
        case Merge::or_: now[b] = operand[b] | static_cast<std::uint8_t>(before & ~value); break;
        case Merge::xor_: now[b] = operand[b] | before; break;
        case Merge::any: now[b] = any[b / size] ? 0xff : 0; break;
      }
    }
    Origin from = (open & bit) != 0 ? origin : out.origins[lane];
    if (a.merge == Merge::any) from.computed = true;
    write(point, a.address[lane], now.data(), a.width, from, pages);
    if (old) gives |= bit;
  });
  out.lanes = a.kind == AccessKind::atomic ? (out.lanes & ~a.lanes) | gives : 0;
}

void Initcheck::global(const WarpPoint& point, const Access& a, const Extent& extent) {
  const Object* object = AddressSpace::instance().find(extent.low);
  if (!object || !object->contains(extent.low, extent.bytes())) {
    Mask counted = 0;
    each_lane(a.lanes, [&](unsigned lane) { counted |= counts(a.address[lane]) ? Mask{1} << lane : 0; });
    if (counted == 0) return;
    if (counted != a.lanes) {
      const Access part = narrowed(a, counted);
      return counted_lanes(point, part, extent_of(part));
    }
  } else if (!begins_unwritten(object->kind)) {
    return;
  }
  counted_lanes(point, a, extent);
}

void Initcheck::counted_lanes(const WarpPoint& point, const Access& a, const Extent& extent) {
  if (a.kind == AccessKind::load) load(point, a, extent, &pages_);
  else if (a.kind == AccessKind::store) store(point, a, &pages_);
  else atomic(point, a, extent, &pages_);
}

void Initcheck::shared(const WarpPoint& point, const Access& a, const Extent& extent) {
  if (a.kind == AccessKind::load) load(point, a, extent, nullptr);
  else if (a.kind == AccessKind::store) store(point, a, nullptr);
  else atomic(point, a, extent, nullptr);
}

void Initcheck::landed(const WarpPoint& point, const AsyncCopy& copy, Mask, const CopySide& source,
                       const CopySide& destination) {
  const auto& [to, room] = destination;
  if (fills(to, room)) written_.set(room.low, room.bytes());
  else to.for_each_run([&](std::uint64_t at, std::uint64_t bytes, Mask) { written_.set(at, bytes); });
  // Whole copies whose sources lie in one object: all lanes at once.
  Mask rest = to.lanes;
  if (const Mask whole = source.access.lanes & rest; whole != 0 && !any_undefined_) {
    const auto& [from, extent] = source;
    const Object* object = AddressSpace::instance().find(extent.low);
    if (object && object->contains(extent.low, extent.bytes()) &&
        (!begins_unwritten(object->kind) || all_written(from, extent)))
      rest &= ~whole;
  }
  each_lane(rest, [&](unsigned lane) { lane_landed(point, copy, lane); });
}

// The undefined bits of the source come along.
void Initcheck::lane_landed(const WarpPoint& point, const AsyncCopy& copy, unsigned lane) {
  const std::uint64_t source = copy.source.address[lane];
  const std::uint32_t bytes = copy.source_bytes[lane];
  if (bytes == 0 || !counts(source) || all_written(source, bytes, &pages_)) return;
  WarpPoint issue = point;
  issue.pc = copy.pc;
  Undefined found;
  if (read(issue, lane, source, bytes, &pages_, found))
    write(point, copy.destination.address[lane], found.bits[lane].data(), bytes, found.origins[lane], nullptr);
}

}  // namespace machine::checks
