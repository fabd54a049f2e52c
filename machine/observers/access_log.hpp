// Accesses written down as they come, to be gone through only when another access may conflict with one of them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>

#include "events/access.hpp"
#include "observers/marks.hpp"
#include "observers/reach.hpp"

namespace machine::checks {

class AccessLog {
 public:
  struct Record {
    std::uint32_t pc = 0, warp = 0;
    Stamp stamp = 0;
    Stamp warp_floor = 0;  // what the warp knew of its own accesses
    Stamp met = 0;         // when it last met in a collective
    Mask lanes = 0, breaks = 0;
    std::uint8_t width = 0;
    Touch touch = Touch::read;
    Shape shape = Shape::scattered;
    bool is_volatile : 1 = false;
    bool read_only : 1 = false;

    // Addresses follow it: those of all lanes, or where the shape says the rest, that of the first lane.
    std::size_t addresses() const { return shape == Shape::scattered ? kWarp : 1; }
    std::size_t words() const { return sizeof(Record) / 8 + addresses(); }
  };
  static_assert(sizeof(Record) % 8 == 0);

  bool full() const { return used_ + sizeof(Record) / 8 + kWarp > kWords; }
  bool more_than_half_full() const { return used_ > kWords / 2; }
  void clear() { used_ = 0; }

  void append(const Access& a, std::uint32_t warp, std::uint32_t pc, Touch touch, Stamp stamp, Stamp warp_floor = 0,
              Stamp met = 0) {
    if (!words_) words_ = std::make_unique_for_overwrite<std::uint64_t[]>(kWords);
    Record r;
    r.pc = pc, r.warp = warp, r.stamp = stamp, r.warp_floor = warp_floor, r.met = met;
    r.width = static_cast<std::uint8_t>(a.width), r.lanes = a.lanes, r.breaks = a.breaks;
    r.touch = touch, r.shape = a.shape;
    r.is_volatile = a.order == Order::volatile_, r.read_only = a.cache == CacheOp::nc;
    std::uint64_t* at = words_.get() + used_;
    std::memcpy(at, &r, sizeof r);
    at += sizeof r / 8;
    if (a.shape == Shape::scattered) std::memcpy(at, a.address, kWarp * 8);
    else *at = a.address[a.first_lane()];
    used_ += r.words();
  }

  // Calls f(record, access) for all, oldest first, and forgets them. The access has no data.
  template <class F>
  void replay(F&& f) {
    std::array<std::uint64_t, kWarp> room;
    for (std::size_t at = 0; at < used_;) {
      const Record r = record(at);
      const std::uint64_t* address = words_.get() + at + sizeof r / 8;
      Access a;
      a.kind = r.touch == Touch::write || r.touch == Touch::async_write ? AccessKind::store
               : r.touch == Touch::async_read                           ? AccessKind::async_read
                                                                        : AccessKind::load;
      a.shape = r.shape, a.width = r.width, a.lanes = r.lanes, a.breaks = r.breaks;
      a.address = address;
      if (r.shape != Shape::scattered) {
        const std::uint64_t step = r.shape == Shape::contiguous ? r.width : 0;
        for (unsigned l = 0; l < kWarp; ++l) room[l] = *address + step * l;
        a.address = room.data();
      }
      f(r, a);
      at += r.words();
    }
    used_ = 0;
  }

  // Drops what `past` says nothing can depend on any more.
  template <class F>
  void forget(F&& past) {
    std::size_t kept = 0;
    for (std::size_t at = 0; at < used_;) {
      const Record r = record(at);
      const std::size_t words = r.words();
      if (!past(r)) {
        std::memmove(words_.get() + kept, words_.get() + at, words * 8);
        kept += words;
      }
      at += words;
    }
    used_ = kept;
  }

 private:
  static constexpr std::size_t kWords = 16'384;  // 128 KB: 400 scattered accesses, 3000 others

  Record record(std::size_t at) const {
    Record r;
    std::memcpy(static_cast<void*>(&r), words_.get() + at, sizeof r);
    return r;
  }

  std::unique_ptr<std::uint64_t[]> words_;
  std::size_t used_ = 0;
};

}  // namespace machine::checks
