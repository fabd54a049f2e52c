// Loads that only give a compare-and-swap its first guess: `old = *p; do { seen = old; old = atomicCAS(p, seen,
// f(seen)); } ...`.
//
// A guess that is out of date costs a round, and nothing else depends on it. Such a load is as good as a relaxed one,
// and is executed and checked as that; it still races with plain stores.
#pragma once

#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "exec/linear_address.hpp"

namespace machine {

class FirstGuesses {
 public:
  // A statement of the function: its mnemonic as it stands in the text, and its operands.
  void look_at(std::string_view mnemonic, std::string_view operands);
  // After the last one: finds the loads of the address of a swap whose value comes to it by moves as what it compares
  // with.
  void settle(const LinearAddresses& addresses);
  bool has(std::string_view mnemonic) const { return loads_.contains(mnemonic.data()); }

 private:
  struct Use {
    std::string_view mnemonic, reg,
        address;  // of a load: the register that it writes; of a swap: what is compared with
    unsigned bits = 0;
  };

  std::vector<Use> candidates_, swaps_;
  std::unordered_multimap<std::string_view, std::string_view> moves_;  // by what they write
  std::unordered_set<const char*> loads_;                              // by where their mnemonic stands
};

}  // namespace machine
