// Which loads of a kernel are pure copies: every use of the loaded register is to be stored again.
//
// Found from the PTX text of the kernel, once, when a load first meets an unwritten byte. Such a load may carry padding,
// so the unwritten bytes travel with it to where they are stored.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "observers/observer.hpp"

namespace machine::checks {

class CopyAnalysis {
 public:
  explicit CopyAnalysis(const Kernel& kernel);

  struct Move {
    bool pure = false;                     // of a load: nothing but stores uses what it loads
    std::vector<std::uint32_t> registers;  // of a load or store, one a component; a copy has the number of its source
  };
  // nullptr: the instruction at `pc` is no load or store.
  const Move* at(std::uint32_t pc) const;

 private:
  std::unordered_map<std::uint32_t, Move> moves_;
};

}  // namespace machine::checks
