// What an address is computed from, as a sum of registers and variables times constants: two that have the same sum are
// the same place. Follows moves, additions, products with a constant and conversions back to where they cannot be
// followed.
#pragma once

#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace machine {

struct LinearAddress {
  std::vector<std::pair<std::string_view, std::int64_t>> terms;  // by name, none with factor 0
  std::int64_t constant = 0;

  bool operator==(const LinearAddress&) const = default;
};

class LinearAddresses {
 public:
  // A statement of the function: its mnemonic as it stands in the text, and its operands.
  void look_at(std::string_view mnemonic, std::string_view operands);
  // After the last one. `definitions`: how many statements write each register; those of one are followed.
  void settle(const std::unordered_map<std::string_view, std::uint32_t>& definitions);

  // Of [base], [base+offset] or [base+-offset].
  LinearAddress of(std::string_view address) const;
  // How far apart the places lie that the stores to global memory write, where that is a power of two and more than
  // what one of them writes together with its neighbours: the sizes of structs. All of them, in one word.
  unsigned strides() const;

 private:
  struct Definition {
    std::string_view to, mnemonic, operands;
  };
  void add(LinearAddress& sum, std::string_view operand, std::int64_t factor, unsigned depth) const;

  std::vector<Definition> statements_;
  std::vector<std::string_view> stores_;  // their addresses
  std::unordered_map<std::string_view, Definition> definitions_;
};

// The operand at the front, without the blanks around it; `operands` goes on behind it.
std::string_view next_operand(std::string_view& operands);

}  // namespace machine
