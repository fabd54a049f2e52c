// Accesses of the running block to global memory, written down as they come: cheap while nothing depends on them.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "observers/access.hpp"
#include "observers/marks.hpp"
#include "observers/reach.hpp"

namespace machine::checks {

class AccessLog {
 public:
  struct Record {
    std::uint32_t pc = 0, warp = 0;
    Stamp stamp = 0;
    Touch touch = Touch::read;
    Shape shape = Shape::scattered;
    std::uint32_t width = 0;
    Mask lanes = 0, breaks = 0;
    alignas(64) std::array<std::uint64_t, 32> address;  // contiguous or uniform: that of the first lane

    // What the checks were told, without the data.
    Access access() {
      Access a;
      a.kind = touch == Touch::write ? AccessKind::store : touch == Touch::read ? AccessKind::load : AccessKind::async_read;
      a.shape = shape;
      a.width = width;
      a.lanes = lanes;
      a.breaks = breaks;
      if (shape == Shape::contiguous)
        for (unsigned l = 1; l < kWarp; ++l) address[l] = address[0] + std::uint64_t{l} * width;
      if (shape == Shape::uniform) address.fill(address[static_cast<unsigned>(std::countr_zero(lanes))]);
      a.address = address.data();
      return a;
    }
  };
  static constexpr std::size_t kCapacity = 512;

  bool full() const { return count_ == kCapacity; }
  bool more_than_half_full() const { return count_ > kCapacity / 2; }

  void append(const Access& a, std::uint32_t warp, std::uint32_t pc, Stamp stamp, Touch touch) {
    if (!records_) records_ = std::make_unique_for_overwrite<Record[]>(kCapacity);
    Record& r = records_[count_++];
    r.pc = pc, r.warp = warp, r.stamp = stamp, r.touch = touch;
    r.shape = a.shape, r.width = a.width, r.lanes = a.lanes, r.breaks = a.breaks;
    const unsigned first = a.first_lane();
    if (a.shape == Shape::scattered) std::memcpy(r.address.data(), a.address, sizeof r.address);
    else r.address[first] = a.address[first];
  }
  template <class F>
  void replay(F&& f) {
    for (std::size_t i = 0; i < count_; ++i) f(records_[i]);
    count_ = 0;
  }
  // Drops what `past` says nothing can depend on any more.
  template <class F>
  void forget(F&& past) {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < count_; ++i) {
      if (past(records_[i])) continue;
      if (kept != i) records_[kept] = records_[i];
      ++kept;
    }
    count_ = kept;
  }
  void clear() { count_ = 0; }

 private:
  std::unique_ptr<Record[]> records_;
  std::size_t count_ = 0;
};

}  // namespace machine::checks
