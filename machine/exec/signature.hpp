// The parameters and results of a function: in its header, and in the prototype of a call by address.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "exec/types.hpp"

namespace machine {

class Scanner;

struct Formal {
  std::string_view name;
  Type type = Type::none;
  std::uint32_t bytes = 0, align = 1;
  bool is_register = false;
};

struct Signature {
  std::vector<Formal> results, formals;

  // Values pass from a call of this signature to a function of the other, and back.
  bool fits(const Signature& other) const;
};

// "(.param .b32 a, .reg .b64 b)"
std::vector<Formal> parse_formals(Scanner& text);
// What follows ".callprototype", up to and with the ';'.
Signature parse_prototype(Scanner& text);

}  // namespace machine
