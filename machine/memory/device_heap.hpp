// The heap that malloc and free of kernels work on. It lives as long as the device: memory that one kernel got, another
// may give back. What has been given back is never given out again, so that a use of it is seen.
#pragma once

#include <cstdint>
#include <mutex>

#include "memory/object.hpp"

namespace machine {

class DeviceHeap {
 public:
  static DeviceHeap& instance();

  // A launch that may use the heap begins, which has `bytes` (cudaLimitMallocHeapSize): from the first such launch on
  // they stay.
  void begin(std::uint64_t bytes);
  bool in_use() const;
  void reset();  // nothing is allocated any more

  // nullptr: no room, malloc gives null. Throws std::bad_alloc when there are no addresses left.
  const Object* allocate(std::uint64_t bytes, std::uint32_t align, std::uint64_t operation);

  enum class Standing : std::uint8_t { live, freed, inside, foreign };
  // What `address` is to free().
  Standing standing(std::uint64_t address) const;
  // Gives back what begins there and is live.
  void release(std::uint64_t address, std::uint64_t operation);

 private:
  mutable std::mutex lock_;
  std::uint64_t limit_ = 0, taken_ = 0;
  bool in_use_ = false;
};

}  // namespace machine
