// Accesses to global memory in the lines that remember them.
//
// A run of memory is cut into lines; in each, the access is compared with the entries that are there and becomes one
// itself, or part of one. Entries whose every byte has been overwritten go, and a line that grows is pruned.
#include <algorithm>

#include "observers/race_global.hpp"

namespace machine::checks {

void GlobalRaces::compare_and_remember(const BlockOrder& order, unsigned warp, const Access& a, Entry entry) {
  if (a.shape == Shape::uniform && !writes(entry.touch)) {
    entry.affine = false;
    entry.lanes = a.lanes;
    return run(order, warp, a.address[a.first_lane()], a.width, entry, &a);
  }
  const unsigned shift = static_cast<unsigned>(std::countr_zero(a.width));
  a.for_each_run([&](std::uint64_t address, std::uint64_t bytes, Mask lanes) {
    const unsigned first = static_cast<unsigned>(std::countr_zero(lanes));
    const bool consecutive = ((lanes >> first) & ((lanes >> first) + 1)) == 0;
    if (consecutive && std::has_single_bit(a.width) && address % a.width == 0) {
      entry.affine = true;
      entry.shift = static_cast<std::uint8_t>(shift);
      entry.lane0 = static_cast<std::int8_t>(first);
      return run(order, warp, address, bytes, entry, &a);
    }
    entry.affine = false;
    for (Mask rest = lanes; rest != 0; rest &= rest - 1, address += a.width) {
      entry.lanes = rest & -rest;
      run(order, warp, address, a.width, entry, &a);
    }
  });
}

// Cuts a run of memory into lines. entry.lane0 is the lane at `address`.
void GlobalRaces::run(const BlockOrder& order, unsigned warp, std::uint64_t address, std::uint64_t bytes, Entry entry,
                      const Access* access) {
  const int first_lane = entry.lane0;
  const std::uint64_t start = address, end = address + bytes;
  while (address < end) {
    const std::uint64_t line_address = address & ~(kLineBytes - 1);
    const unsigned offset = static_cast<unsigned>(address - line_address);
    const unsigned count = static_cast<unsigned>(std::min(end, line_address + kLineBytes) - address);
    entry.bytes = bytes_mask(offset, count);
    if (entry.affine)
      entry.lane0 = static_cast<std::int8_t>(first_lane + static_cast<int>((address - start) >> entry.shift) -
                                             static_cast<int>(offset >> entry.shift));
    touch(order, warp, sheet_of(pages_.at(address)).line(address), line_address, entry, access);
    address += count;
  }
}

void GlobalRaces::remember(const BlockOrder& order, unsigned warp, Line& line, const Entry& entry) {
  line.touched |= static_cast<std::uint8_t>(1u << static_cast<unsigned>(entry.touch));
  const bool plain_write = entry.touch == Touch::write;
  const Stamp floor = order.warp(warp).barrier_floor;
  Entry* place = nullptr;
  // A plain write is the last word on its bytes. A read or atomic replaces what it certainly comes after.
  const auto superseded = [&](Entry& e) {
    if (plain_write) {
      e.bytes &= ~entry.bytes;
      return e.bytes == 0;
    }
    if ((e.bytes & ~entry.bytes) != 0 || e.block != entry.block || e.touch != entry.touch ||
        e.read_only != entry.read_only || e.value_bytes != entry.value_bytes)
      return false;
    return (!async(e.touch) && e.stamp < floor) || (e.warps == entry.warps && e.same_threads(entry));
  };
  const auto merges = [&](Entry& e) {
    return entry.touch == Touch::read && e.touch == Touch::read && e.block == entry.block && e.stamp == entry.stamp &&
           e.pc == entry.pc && e.bytes == entry.bytes && e.read_only == entry.read_only && e.section == entry.section &&
           e.same_threads(entry);
  };
  if (line.first.bytes != 0) {
    if (merges(line.first)) return void(line.first.warps |= entry.warps);
    if (superseded(line.first)) line.first.bytes = 0, place = &line.first;
  } else {
    place = &line.first;
  }
  if (line.more) {
    auto& more = *line.more;
    if (entry.touch == Touch::read)
      for (std::size_t i = more.size(), left = 16; i-- > 0 && left > 0; --left)
        if (merges(more[i])) return void(more[i].warps |= entry.warps);
    if (plain_write || more.size() < 64) std::erase_if(more, superseded);
    if (more.empty()) line.more.reset();
  }
  if (plain_write && !line.more && place) line.touched = 1u << static_cast<unsigned>(entry.touch);
  if (place) return void(*place = entry);
  if (!line.more) line.more = std::make_unique<std::vector<Entry>>();
  line.more->push_back(entry);
  if (line.more->size() >= line.prune_at) {
    prune(line, entry.block);
    line.prune_at = std::max<std::uint32_t>(8, 2 * static_cast<std::uint32_t>(line.more->size()));
  }
}

// Keeps a list of readers short. Where blocks cannot talk to each other, two foreign readers of a byte say all that any
// number would; where they can, a later read of the same threads replaces an earlier one.
void GlobalRaces::prune(Line& line, std::uint32_t block) {
  auto& more = *line.more;
  if (!launch_.communicates) {
    std::uint32_t known[2] = {};
    Bytes cover[2] = {};
    unsigned blocks = 0;
    std::erase_if(more, [&](const Entry& e) {
      if (e.touch != Touch::read || e.block == block) return false;
      unsigned i = 0;
      while (i < blocks && known[i] != e.block) ++i;
      if (i == blocks && blocks < 2) known[blocks++] = e.block;
      if (i >= 2) return (e.bytes & ~(cover[0] & cover[1])) == 0;
      cover[i] |= e.bytes;
      return false;
    });
    return;
  }
  std::vector<Entry> kept;
  std::vector<std::size_t> order(more.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return std::tuple(more[a].block, more[a].warps, more[a].touch) <
           std::tuple(more[b].block, more[b].warps, more[b].touch);
  });
  for (std::size_t i : order) {
    const Entry& e = more[i];
    if (!kept.empty()) {
      Entry& last = kept.back();
      if (last.block == e.block && last.warps == e.warps && last.touch == e.touch && last.same_threads(e) &&
          (last.bytes & ~e.bytes) == 0 && last.stamp <= e.stamp && last.read_only == e.read_only) {
        last = e;
        continue;
      }
    }
    kept.push_back(e);
  }
  more = std::move(kept);
}

}  // namespace machine::checks
