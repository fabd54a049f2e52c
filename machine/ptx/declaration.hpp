// A variable declaration: "[.align n] .type name[dims] [= initialiser]", wherever it stands.
#pragma once

#include <string_view>

#include "exec/types.hpp"
#include "ptx/scanner.hpp"

namespace machine {

struct Declaration {
  std::string_view name;
  Type type = Type::none;
  std::uint32_t align = 0;  // 0 as given: natural
  std::uint64_t bytes = 0;  // in all
  bool is_array = false;
  bool open_array = false;        // name[]
  std::uint32_t count_range = 0;  // name<count>
  bool managed = false;
  unsigned vector = 1;
};

// Reads up to the name and its dimensions; the cursor is left before '=', ',' , ')' or ';'.
Declaration parse_declaration(Scanner& text);
// The next declarator of a list that shares type and alignment with `first`.
Declaration parse_declarator(Scanner& text, const Declaration& first);

}  // namespace machine
