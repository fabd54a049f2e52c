// What outlives a launch of the undefined values that its kernel stored to global memory.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "observers/store_width.hpp"
#include "report/finding.hpp"

namespace machine::checks {

// An origin in words, as the kernel may be gone when it is reported. `finding` lacks the place where the value decides
// something.
struct KeptOrigin {
  report::Finding finding;
  bool computed = false;
  StoreWidth widest;  // of what was stored to where the value was read first
};

struct Kept {
  std::unordered_map<std::uint64_t, std::uint8_t> partial;  // undefined bits of bytes that are undefined in part
  std::unordered_map<std::uint64_t, std::uint32_t> stored;  // by address / 64: what was stored there last, in `origins`
  std::vector<KeptOrigin> origins;
  std::unordered_map<std::uint32_t, StoreWidth> widest;  // by object: of what kernels stored
  std::unordered_map<std::uint32_t, unsigned>
      strides;  // by object: sizes of structs that a kernel stored to, powers of two

  static constexpr std::uint64_t granule(std::uint64_t address) { return address >> 6; }
  const KeptOrigin* origin_at(std::uint64_t address) const {
    const auto at = stored.find(granule(address));
    return at == stored.end() ? nullptr : &origins[at->second];
  }
  void forget(std::uint64_t address, std::uint64_t bytes) {
    std::erase_if(partial, [=](const auto& e) { return e.first - address < bytes; });
    std::erase_if(stored,
                  [=](const auto& e) { return (e.first << 6) + 63 >= address && e.first << 6 < address + bytes; });
  }
};

}  // namespace machine::checks
