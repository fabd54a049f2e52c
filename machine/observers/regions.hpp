// Live regions that a program registers (NVTX): inside a heap, only their bytes may be touched.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

namespace machine::checks {

// Registered live regions, and the heaps that they live in.
class Regions {
 public:
  void add_heap(std::uint64_t base, std::uint64_t bytes);
  void remove_heap(std::uint64_t base);
  // Heaps and regions that begin in memory which has been freed; few programs take them back themselves.
  void remove_all(std::uint64_t base, std::uint64_t bytes);
  void add(std::uint64_t base, std::uint64_t bytes);
  void remove(std::uint64_t base);

  bool any() const { return !heaps_.empty(); }
  // The stretch around `address` that may be touched: its region, or all between two heaps. Empty for a dead byte.
  struct Stretch {
    std::uint64_t low = 0, high = 0;
    bool holds(std::uint64_t from, std::uint64_t to) const { return from >= low && to <= high; }
  };
  // What follows may be asked only after settle(), which is called before a launch.
  void settle();
  // nullptr for a dead byte. `near`: a stretch that was found before, or nullptr; rows are mostly touched in turn.
  const Stretch* live_around(std::uint64_t address, const Stretch* near = nullptr) const;
  const std::map<std::uint64_t, std::uint64_t>& regions() const { return regions_; }

 private:
  std::map<std::uint64_t, std::uint64_t> heaps_, regions_;  // base to bytes
  std::vector<Stretch> live_;                               // by address: what lies outside every heap, and the regions
  bool settled_ = false;
};

}  // namespace machine::checks
