// initcheck of bulk copies: undefined bits of the source come along.
#include <algorithm>

#include "memory/address_space.hpp"
#include "observers/initcheck.hpp"

namespace machine::checks {

namespace {

constexpr std::uint32_t kMostBytes = 32;  // of one reading

bool on_chip(std::uint64_t address) { return address >= kOnChipBase; }

}  // namespace

void Initcheck::bulk_land(const WarpPoint& point, const BulkCopy& copy, std::uint64_t) {
  const auto pages_of = [&](std::uint64_t address) { return on_chip(address) ? nullptr : &pages_; };
  bool clean = true;
  copy.each_source([&](std::uint64_t address, std::uint64_t bytes) {
    clean = clean && ((!on_chip(address) && !counts(address)) || all_written(address, bytes, pages_of(address)));
  });
  const bool tracked = !on_chip(copy.pieces.empty() ? 0 : copy.pieces.front().to)
                           ? counts(copy.pieces.empty() ? 0 : copy.pieces.front().to)
                           : true;
  if (!tracked) return;
  if (clean) {
    // A reduction leaves undefined what its destination lacked.
    if (!copy.reduces)
      copy.each_destination(
          [&](std::uint64_t address, std::uint64_t bytes) { mark(address, bytes, true, pages_of(address)); });
    return;
  }
  copy.each_chunk([&](std::uint64_t from, std::uint64_t to, std::uint32_t bytes) {
    for (std::uint32_t at = 0; at < bytes; at += kMostBytes) {
      const std::uint32_t n = std::min(kMostBytes, bytes - at);
      Undefined found;
      const bool open =
          from != 0 && (on_chip(from) || counts(from)) && read(point, copy.lane, from + at, n, pages_of(from), found);
      if (open) write(point, to + at, found.bits[copy.lane].data(), n, found.origins[copy.lane], pages_of(to));
      else if (!copy.reduces) mark(to + at, n, true, pages_of(to));
    }
  });
}

// Before its bytes are marked as written: those that nobody has written stay undefined.
void Initcheck::bulk_issue(const WarpPoint& point, const BulkCopy& copy) {
  if (!copy.reduces) return;
  copy.each_destination([&](std::uint64_t address, std::uint64_t bytes) {
    if (on_chip(address) || !counts(address) || all_written(address, bytes, &pages_)) return;
    for (std::uint64_t at = 0; at < bytes; at += kMostBytes) {
      const auto n = static_cast<unsigned>(std::min<std::uint64_t>(kMostBytes, bytes - at));
      Undefined found;
      if (read(point, copy.lane, address + at, n, &pages_, found))
        write(point, address + at, found.bits[copy.lane].data(), n, found.origins[copy.lane], &pages_);
    }
  });
}

}  // namespace machine::checks
