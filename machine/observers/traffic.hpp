// traffic: what a launch reads and writes, exactly: bytes and 32-byte sectors a buffer and a row, and bank conflicts of
// shared memory. Counts only; it finds nothing.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <unordered_map>
#include <vector>

#include "observers/check.hpp"
#include "report/report.hpp"

namespace machine::checks {

class TrafficCount {
 public:
  TrafficCount(const Regions& regions, std::uint64_t row_bytes) : regions_(regions), row_bytes_(row_bytes) {}

  void global(const Access& access);
  void shared(const Access& access, std::uint64_t base);
  void landed(const AsyncCopy& copy, Mask lanes);

  void add(const TrafficCount& other);
  report::LaunchTraffic result(const LaunchInfo& launch) const;

 private:
  struct Buffer {
    report::Traffic total;
    std::map<std::uint64_t, report::Traffic> rows;  // by base address
  };
  void count(const Access& access, bool reads, bool writes);
  void add_run(Buffer& buffer, const Object& object, std::uint64_t address, std::uint64_t bytes, bool reads,
               bool writes);

  const Regions& regions_;
  std::uint64_t row_bytes_;
  std::unordered_map<const Object*, Buffer> buffers_;
  const Object* recent_ = nullptr;
  std::uint64_t shared_accesses_ = 0, shared_wavefronts_ = 0;
};

class TrafficCheck : public ChunkCheck {
 public:
  explicit TrafficCheck(const ChunkContext& context) : count_(context.regions, context.options.row_bytes) {}

  void global(const WarpPoint&, const Access& access, const Extent&) { count_.global(access); }
  void shared(const WarpPoint& point, const Access& access, const Extent&) {
    count_.shared(access, point.block->shared);
  }
  void landed(const WarpPoint&, const AsyncCopy& copy, Mask lanes, const CopySide&, const CopySide&) {
    count_.landed(copy, lanes);
  }
  void bulk_issue(const WarpPoint& point, const BulkCopy& copy);

  const TrafficCount& count() const { return count_; }

 private:
  TrafficCount count_;
};

}  // namespace machine::checks
