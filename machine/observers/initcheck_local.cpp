// initcheck of local memory, which each lane has for itself: a bit a byte and lane.
#include <algorithm>

#include "observers/each_lane.hpp"
#include "observers/initcheck.hpp"
#include "observers/memcheck.hpp"

namespace machine::checks {

namespace {

std::uint64_t of_lane(std::uint64_t place, unsigned lane) { return place << 5 | lane; }

// Calls f(offset, lanes) for each place that an access touches.
template <class F>
void each_place(const Access& a, F&& f) {
  if (a.shape == Shape::uniform) return f(a.address[a.first_lane()], a.lanes);
  each_lane(a.lanes, [&](unsigned lane) { f(a.address[lane], Mask{1} << lane); });
}

}  // namespace

void Initcheck::function_entered(const WarpPoint& point) {
  const std::uint64_t begin = point.frame->base;
  forget_local(point, point.active, begin, begin + point.frame->layout->bytes);
}

void Initcheck::stack_grown(const WarpPoint& point, const GrownStack::Array& grown) {
  each_lane(grown.lanes, [&](unsigned lane) {
    forget_local(point, Mask{1} << lane, grown.base[lane], grown.base[lane] + grown.size[lane]);
  });
}

void Initcheck::forget_local(const WarpPoint& point, Mask lanes, std::uint64_t begin, std::uint64_t end) {
  const auto bits = local_.find(local_key(point));
  if (bits == local_.end() || bits->second.block != point.block->index) return;
  LocalBits& known = bits->second;
  for (std::uint64_t at = begin; at < end && at < known.written.size(); ++at) known.written[at] &= ~lanes;
  const auto inside = [&](std::uint64_t key, unsigned scale) {
    return (key >> 5) * scale >= begin && (key >> 5) * scale < end && (lanes >> (key & 31) & 1) != 0;
  };
  std::erase_if(known.partial, [&](const auto& e) { return inside(e.first, 1); });
  std::erase_if(known.stored, [&](const auto& e) { return inside(e.first, 4); });
}

void Initcheck::local(const WarpPoint& point, const Access& a, const Extent&) {
  LocalBits& bits = local_[local_key(point)];
  if (bits.block != point.block->index) {
    bits.block = point.block->index;
    std::fill(bits.written.begin(), bits.written.end(), 0);
    bits.partial.clear(), bits.stored.clear();
  }
  std::uint64_t high = 0;
  each_lane(a.lanes, [&](unsigned lane) { high = std::max(high, a.address[lane] + a.width); });
  if (high > std::uint64_t{1} << 24) return;
  if (bits.written.size() < high) bits.written.resize(high + high / 2);
  if (a.kind == AccessKind::store) store_local(bits, a);
  else if (a.undefined != nullptr) load_local(point, bits, a);
}

void Initcheck::store_local(LocalBits& bits, const Access& a) {
  each_place(a, [&](std::uint64_t offset, Mask lanes) {
    for (unsigned b = 0; b < a.width; ++b) bits.written[offset + b] |= lanes;
  });
  if (a.undefined == nullptr) return;
  each_lane(a.undefined->lanes & a.lanes, [&](unsigned lane) {
    for (unsigned b = 0; b < a.width; ++b) {
      const std::uint8_t open = a.undefined->bits[lane][b];
      const std::uint64_t offset = a.address[lane] + b;
      if (open == 0) continue;
      bits.written[offset] &= ~(Mask{1} << lane);
      if (open != 0xff) bits.partial[of_lane(offset, lane)] = open;
      else bits.partial.erase(of_lane(offset, lane));
      bits.stored[of_lane(offset >> 2, lane)] = a.undefined->origins[lane];
    }
  });
}

void Initcheck::load_local(const WarpPoint& point, const LocalBits& bits, const Access& a) {
  each_place(a, [&](std::uint64_t offset, Mask lanes) {
    Mask missing = 0;
    for (unsigned b = 0; b < a.width; ++b) missing |= lanes & ~bits.written[offset + b];
    each_lane(missing, [&](unsigned lane) {
      unsigned first = a.width;
      for (unsigned b = 0; b < a.width; ++b) {
        std::uint8_t open = (bits.written[offset + b] >> lane & 1) != 0 ? 0 : 0xff;
        if (open != 0)
          if (const auto at = bits.partial.find(of_lane(offset + b, lane)); at != bits.partial.end()) open = at->second;
        a.undefined->bits[lane][b] = open;
        if (open != 0) first = std::min(first, b);
      }
      a.undefined->lanes |= Mask{1} << lane;
      if (!local_places_.contains(point.pc)) {
        const auto array = local_array_at(point.frame, lane, offset + first);
        local_places_[point.pc] = describe_address(offset + first, array ? &*array : nullptr);
      }
      const Origin here{
          offset + first,      point.pc, static_cast<std::uint8_t>(point.warp), static_cast<std::uint8_t>(lane),
          Origin::Kind::local, false};
      const auto at = bits.stored.find(of_lane((offset + first) >> 2, lane));
      a.undefined->origins[lane] = at != bits.stored.end() ? at->second : here;
    });
  });
}

}  // namespace machine::checks
