#include "observers/traffic.hpp"

#include <algorithm>

#include "exec/machine.hpp"
#include "memory/address_space.hpp"
#include "observers/copy_parts.hpp"

namespace machine::checks {

namespace {

constexpr std::uint64_t kSector = 32;
constexpr unsigned kBanks = 32, kBankBytes = 4;

struct Run {
  std::uint64_t first, last;  // sectors
};

// Distinct sectors of the runs of one access.
std::uint64_t distinct(std::array<Run, 32>& runs, std::size_t count) {
  const auto by_first = [](const Run& a, const Run& b) { return a.first < b.first; };
  if (!std::is_sorted(runs.begin(), runs.begin() + static_cast<long>(count), by_first))
    std::sort(runs.begin(), runs.begin() + static_cast<long>(count), by_first);
  std::uint64_t total = 0, next = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t first = std::max(runs[i].first, next);
    if (runs[i].last < first) continue;
    total += runs[i].last - first + 1;
    next = runs[i].last + 1;
  }
  return total;
}

}  // namespace

void TrafficCount::add_run(Buffer& buffer, const Object& object, std::uint64_t address, std::uint64_t bytes, bool reads,
                           bool writes) {
  const auto add = [&](report::Traffic& t, std::uint64_t at, std::uint64_t n) {
    if (reads) t.bytes_read += n, t.sectors_read += (at + n - 1) / kSector - at / kSector + 1;
    if (writes) t.bytes_written += n, t.sectors_written += (at + n - 1) / kSector - at / kSector + 1;
  };
  const auto& regions = regions_.regions();
  if (regions_.any()) {
    auto region = regions.upper_bound(address);
    if (region != regions.begin()) --region;
    for (; region != regions.end() && region->first < address + bytes; ++region) {
      const std::uint64_t from = std::max(address, region->first),
                          to = std::min(address + bytes, region->first + region->second);
      if (from < to) add(buffer.rows[region->first], from, to - from);
    }
  } else if (row_bytes_ != 0) {
    while (bytes > 0) {
      const std::uint64_t row = (address - object.base) / row_bytes_, start = object.base + row * row_bytes_;
      const std::uint64_t n = std::min(bytes, start + row_bytes_ - address);
      add(buffer.rows[start], address, n);
      address += n, bytes -= n;
    }
  }
}

void TrafficCount::count(const Access& a, bool reads, bool writes) {
  const std::uint64_t lowest = a.address[a.first_lane()];
  if (!recent_ || !recent_->contains(lowest)) recent_ = AddressSpace::instance().find(lowest);
  if (!recent_) return;
  Buffer& buffer = buffers_[recent_];
  std::array<Run, 32> runs;
  std::size_t n = 0;
  const bool rows = regions_.any() || row_bytes_ != 0;
  const auto one = [&](std::uint64_t address, std::uint64_t bytes, std::uint64_t lanes_bytes) {
    runs[n++] = {address / kSector, (address + bytes - 1) / kSector};
    if (reads) buffer.total.bytes_read += lanes_bytes;
    if (writes) buffer.total.bytes_written += lanes_bytes;
    if (rows) add_run(buffer, *recent_, address, bytes, reads, writes);
  };
  if (a.shape == Shape::uniform) one(lowest, a.width, a.width);
  else a.for_each_run([&](std::uint64_t address, std::uint64_t bytes, Mask) { one(address, bytes, bytes); });
  const std::uint64_t sectors = distinct(runs, n);
  if (reads) buffer.total.sectors_read += sectors;
  if (writes) buffer.total.sectors_written += sectors;
}

void TrafficCount::global(const Access& a) { count(a, a.kind != AccessKind::store, a.kind != AccessKind::load); }

// Wavefronts: a group of lanes whose words lie in different banks, or are the same word, goes at once. A group is 32
// lanes for words up to 4 bytes, 16 lanes for 8, 8 lanes for 16.
void TrafficCount::shared(const Access& a, std::uint64_t base) {
  ++shared_accesses_;
  if (a.shape == Shape::uniform) {
    ++shared_wavefronts_;
    return;
  }
  if (a.shape == Shape::contiguous) {
    shared_wavefronts_ += std::max(1u, a.width / kBankBytes);
    return;
  }
  const unsigned group = a.width <= 4 ? 32 : a.width == 8 ? 16 : 8;
  for (unsigned first = 0; first < kWarp; first += group) {
    std::array<std::array<std::uint32_t, 32>, kBanks> words;
    std::array<std::uint8_t, kBanks> used{};
    unsigned deepest = 0;
    for (unsigned l = first; l < first + group; ++l) {
      if ((a.lanes >> l & 1) == 0) continue;
      for (unsigned b = 0; b < std::max(a.width, kBankBytes); b += kBankBytes) {
        const auto word = static_cast<std::uint32_t>((a.address[l] - base + b) / kBankBytes);
        const unsigned bank = word % kBanks;
        auto* begin = words[bank].data();
        auto* end = begin + used[bank];
        if (std::find(begin, end, word) != end || used[bank] == 32) continue;
        *end = word;
        deepest = std::max<unsigned>(deepest, ++used[bank]);
      }
    }
    shared_wavefronts_ += deepest;
  }
}

void TrafficCount::landed(const AsyncCopy& copy, Mask lanes) {
  Access a;
  a.kind = AccessKind::load;
  a.address = copy.source.address;
  for (Mask rest = lanes; rest != 0;) {  // lanes with the same length, neighbours in runs
    const unsigned first = static_cast<unsigned>(std::countr_zero(rest));
    const std::uint32_t bytes = copy.source_bytes[first];
    Mask same = 0, breaks = 0;
    unsigned before = 32;
    for (Mask m = rest; m != 0; m &= m - 1) {
      const unsigned l = static_cast<unsigned>(std::countr_zero(m));
      if (copy.source_bytes[l] != bytes) continue;
      same |= Mask{1} << l;
      if (before == 32 || copy.source.address[l] != copy.source.address[before] + bytes) breaks |= Mask{1} << l;
      before = l;
    }
    rest &= ~same;
    if (bytes == 0) continue;
    a.lanes = same, a.breaks = breaks, a.width = bytes;
    count(a, true, false);
  }
}

void TrafficCount::add(const TrafficCount& other) {
  for (const auto& [object, from] : other.buffers_) {
    Buffer& to = buffers_[object];
    to.total.add(from.total);
    for (const auto& [base, t] : from.rows) to.rows[base].add(t);
  }
  shared_accesses_ += other.shared_accesses_;
  shared_wavefronts_ += other.shared_wavefronts_;
}

report::LaunchTraffic TrafficCount::result(const LaunchInfo& launch) const {
  report::LaunchTraffic result;
  result.kernel = demangled(launch.kernel->name());
  result.operation = launch.operation;
  result.shared_accesses = shared_accesses_;
  result.shared_wavefronts = shared_wavefronts_;
  std::vector<const Object*> objects;
  for (const auto& [object, buffer] : buffers_) objects.push_back(object);
  std::sort(objects.begin(), objects.end(), [](const Object* a, const Object* b) { return a->base < b->base; });
  for (const Object* object : objects) {
    if (object->kind == ObjectKind::param) continue;
    const Buffer& buffer = buffers_.at(object);
    report::BufferTraffic out;
    out.name = object->name.empty() ? describe_object(*object) : object->name;
    out.base = object->base;
    out.bytes = object->size;
    out.row_bytes = regions_.any() ? 0 : row_bytes_;
    out.total = buffer.total;
    // Every row is listed, also one that nobody touched: "each live row exactly once" is read from it.
    if (regions_.any()) {
      for (auto r = regions_.regions().lower_bound(object->base);
           r != regions_.regions().end() && r->first < object->base + object->size; ++r) {
        const auto row = buffer.rows.find(r->first);
        out.row_base.push_back(r->first), out.row_size.push_back(r->second);
        out.rows.push_back(row == buffer.rows.end() ? report::Traffic{} : row->second);
      }
    } else {
      for (const auto& [base, t] : buffer.rows) {
        out.row_base.push_back(base), out.row_size.push_back(row_bytes_);
        out.rows.push_back(t);
      }
    }
    result.buffers.push_back(std::move(out));
  }
  return result;
}

void TrafficCheck::bulk_issue(const WarpPoint&, const BulkCopy& copy) {
  each_global_part(copy, [&](const Access& part, Touch) { count_.global(part); });
}

}  // namespace machine::checks
