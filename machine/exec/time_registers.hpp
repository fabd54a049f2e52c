// Registers of a function that hold what a clock said, or what was computed from that: a wait that looks at the clock
// is never again quite what it was, though nothing else about it changes (stillness.hpp).
#pragma once

#include <string_view>
#include <unordered_set>
#include <vector>

namespace machine {

class TimeRegisters {
 public:
  // A statement of the function: its mnemonic as it stands in the text, and its operands.
  void look_at(std::string_view mnemonic, std::string_view operands);
  // After the last one: their names.
  std::unordered_set<std::string_view> settle() const;

 private:
  struct Statement {
    std::string_view to, operands;
  };
  std::vector<Statement> statements_;
  std::unordered_set<std::string_view> clocks_;
};

}  // namespace machine
