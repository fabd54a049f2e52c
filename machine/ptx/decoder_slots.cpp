// Where values lie: places of registers in the frame, constants, and what instructions keep beside them.
#include <cstring>

#include "memory/round_up.hpp"
#include "ptx/decoder.hpp"

namespace machine {

Slot Decoder::scratch(unsigned bytes) {
  if (bytes == 0) {
    if (function.predicate_room % 64 == 0) function.predicate_room = function.frame_bytes, function.frame_bytes += 64;
    const auto s = slot(Bank::registers, function.predicate_room);
    function.predicate_room += 4;
    return s;
  }
  const auto s = slot(Bank::registers, function.frame_bytes);
  function.frame_bytes += round_up(bytes * 32, 64);
  if (function.frame_bytes > (1u << 28)) fail("too many registers");
  return s;
}

Slot Decoder::passing(unsigned bytes) {
  const Slot s = scratch(bytes);
  if (following_) function.places.push_back({s & ~Slot{3}, pc_, pc_});
  return s;
}

Slot Decoder::local_base() {
  const Slot s = scratch(8);
  emit([](const Inst& i, Warp& w, Mask) -> const Inst* {
    auto* d = w.at<std::uint64_t>(i.d);
    for (unsigned l = 0; l < kWarp; ++l) d[l] = w.frame->base;
    return &i + 1;
  }).d = s;
  return s;
}

Slot Decoder::register_place(unsigned bytes) {
  if (bytes == 0 || layout_ == nullptr) return scratch(bytes);
  return slot(Bank::registers, register_base_ + layout_->offsets[numbered_.size()]);
}

Slot Decoder::reg_slot(Variable& v, Use use) {
  if (!v.allocated) {
    // an 8-bit register lies in a 16-bit slot
    const unsigned bytes = v.bytes == 0 ? 0 : std::max<unsigned>(v.bytes, 2);
    v.slot = register_place(bytes);
    v.number = static_cast<std::uint32_t>(numbered_.size());
    numbered_.emplace_back(v.slot, static_cast<std::uint8_t>(bytes));
    v.allocated = true;
    if (layout_ == nullptr) lifetimes_.add(bytes * kWarp);
  }
  if (layout_ == nullptr && v.number != ~std::uint32_t{0}) {
    if (use == Use::read) lifetimes_.read(v.number, pc_);
    else lifetimes_.write(v.number, pc_, guard_ == true_);
  }
  return v.slot;
}

Slot Decoder::noted(Use use, Slot s, unsigned bytes) {
  if (following_) (use == Use::read ? reads_ : writes_).push_back({s, static_cast<std::uint8_t>(bytes)});
  return s;
}

Slot Decoder::constant(const void* value, unsigned bytes) {
  std::string key(static_cast<const char*>(value), bytes);
  auto [found, fresh] = constants_.emplace(std::move(key), 0);
  if (fresh) {
    const auto at = static_cast<std::uint32_t>(function.constants.size());
    function.constants.resize(at + round_up(bytes * 32, 64));
    for (unsigned l = 0; l < 32; ++l) std::memcpy(function.constants.data() + at + l * bytes, value, bytes);
    found->second = slot(Bank::constants, at);
  }
  return found->second;
}

Slot Decoder::constant_mask(Mask mask) {
  std::string key = "mask";
  key.append(reinterpret_cast<const char*>(&mask), 4);
  auto [found, fresh] = constants_.emplace(std::move(key), 0);
  if (fresh) {
    const auto at = static_cast<std::uint32_t>(function.constants.size());
    function.constants.resize(at + 64);
    std::memcpy(function.constants.data() + at, &mask, 4);
    found->second = slot(Bank::constants, at);
  }
  return found->second;
}

const Slot* Decoder::keep_slots(std::vector<Slot> slots) {
  function.slot_lists.push_back(std::move(slots));
  return function.slot_lists.back().data();
}

const void* Decoder::keep_bytes(const void* bytes, std::size_t size) {
  const auto* from = static_cast<const std::byte*>(bytes);
  function.blobs.emplace_back(from, from + size);
  return function.blobs.back().data();
}

}  // namespace machine
