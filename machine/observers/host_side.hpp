// The checks of what the host does: copies and sets, and its own accesses to memory that the device shares.
#pragma once

#include <cstdint>
#include <vector>

#include "observers/bits.hpp"
#include "observers/checks.hpp"
#include "observers/kept.hpp"
#include "observers/operations.hpp"

namespace machine::checks {

class HostSide {
 public:
  HostSide(const CheckOptions& options, report::Report& report, ArenaBits& written, Kept& kept, Operations& operations)
      : options_(options), report_(report), written_(written), kept_(kept), operations_(operations) {}

  void begin(const Operation& operation);
  void end(const Operation& operation);
  // False: the range leaves its object or is freed, and must not be touched.
  bool access(std::uint64_t operation, AccessKind kind, std::uint64_t address, std::uint64_t bytes, std::uint64_t pitch,
              std::uint64_t rows);

 private:
  void invalid(AccessKind kind, std::uint64_t address, std::uint64_t bytes, const Object* object, const char* why);
  void check_overlap(const TouchedRange& destination);
  void copied_to_device(const TouchedRange& destination, const TouchedRange* brought);
  void copied_to_host(const TouchedRange& source);
  bool is_computed(std::uint64_t address) const;
  StoreWidth widest_at(std::uint64_t address) const;
  void unwritten(const TouchedRange& source, std::uint64_t first, std::uint64_t missing);
  void undefined(const KeptOrigin& origin, std::uint64_t missing);

  const CheckOptions& options_;
  report::Report& report_;
  ArenaBits& written_;
  Kept& kept_;
  Operations& operations_;
  Operation current_;
  std::vector<TouchedRange> unwritten_;  // device memory that the copy under way reads, slice by slice
  std::size_t arrived_ = 0;              // slices of it that have gone to other device memory
  std::vector<TouchedRange> sources_;    // of the copy under way, slice by slice
};

}  // namespace machine::checks
