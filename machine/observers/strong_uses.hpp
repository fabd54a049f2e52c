// What a kernel's text says about its strong accesses: volatile ones and atomics.
#pragma once

#include <cstdint>
#include <set>
#include <unordered_map>
#include <vector>

#include "events/observer.hpp"

namespace machine::checks {

// Reads the text when first asked.
class StrongUses {
 public:
  explicit StrongUses(const Kernel* kernel) : kernel_(kernel) {}

  // Whether a volatile store stores what comes from a volatile load: v = v + 1, an update that others may come between,
  // where a flag is set to a value of its own.
  bool is_update(std::uint32_t pc) { return read(), updates_.count(pc) != 0; }
  // Whether what a volatile load gives is compared, or goes to other lanes or to a function: it may be a flag that is
  // polled.
  bool is_flag(std::uint32_t pc) { return read(), flags_.count(pc) != 0; }
  // Whether an atomic is an exchange of which nobody looks at the old value: a store.
  bool is_blind_exchange(std::uint32_t pc) { return read(), blind_exchanges_.count(pc) != 0; }
  // Bytes of one value of an atomic, which may have several, as .v4.f32 and .f16x2 have; 0 where the text does not say.
  unsigned atomic_bytes(std::uint32_t pc);
  bool of_mixed_width(std::uint32_t one, std::uint32_t other) {
    return one != other && atomic_bytes(one) != atomic_bytes(other);
  }

 private:
  void read();

  const Kernel* kernel_;
  bool read_ = false;
  std::set<std::uint32_t> updates_, flags_, blind_exchanges_;
  std::vector<std::uint8_t> bytes_;  // by pc, one more than atomic_bytes(); 0: not looked at
};

}  // namespace machine::checks
