#include "ptx/declaration.hpp"

#include <string>

namespace machine {

Declaration parse_declarator(Scanner& text, const Declaration& first) {
  Declaration d = first;
  d.is_array = d.open_array = false;
  d.count_range = 0;
  d.name = text.word();
  if (d.name.empty()) text.fail("a declaration has no name");
  std::uint64_t elements = 1;
  auto number = [&] {
    Number n;
    const auto word = text.word();
    if (!parse_number(word, n) || n.kind != Number::integer) text.fail("bad size '" + std::string(word) + "'");
    return n.bits;
  };
  if (text.accept('<')) {
    d.count_range = static_cast<std::uint32_t>(number());
    text.expect('>');
  }
  while (text.accept('[')) {
    d.is_array = true;
    if (text.accept(']')) {
      d.open_array = true;
      elements = 0;
      continue;
    }
    const auto extent = number();
    if (extent != 0 && elements > (std::uint64_t{1} << 40) / extent)
      text.fail("array '" + std::string(d.name) + "' is too large");
    elements *= extent;
    text.expect(']');
  }
  const unsigned element = bytes_of(d.type) * d.vector;
  d.bytes = elements * element;
  if (d.align == 0) d.align = element == 0 ? 1 : element;
  return d;
}

Declaration parse_declaration(Scanner& text) {
  Declaration d;
  for (;;) {
    const auto word = text.word();
    if (word.empty() || word[0] != '.') text.fail("expected a type, found '" + std::string(word) + "'");
    if (word == ".align") {
      Number n;
      const auto value = text.word();
      if (!parse_number(value, n) || n.kind != Number::integer || n.bits == 0 || (n.bits & (n.bits - 1)) != 0 ||
          n.bits > 4096)
        text.fail("bad alignment '" + std::string(value) + "'");
      d.align = static_cast<std::uint32_t>(n.bits);
    } else if (word == ".ptr" || word == ".global" || word == ".shared" || word == ".const" || word == ".local") {
      // .param .u64 .ptr .global .align 16 name: a hint about what the pointer points at
      if (word != ".ptr") continue;
      for (;;) {
        const char c = text.peek();
        if (c != '.') break;
        const auto hint = text.word();
        if (hint == ".align") text.word();
      }
      return parse_declarator(text, d);
    } else if (word == ".v2" || word == ".v4") {
      d.vector = word == ".v2" ? 2 : 4;
    } else if (word == ".attribute") {
      text.expect('(');
      for (;;) {
        const auto attribute = text.word();
        if (attribute == ".managed") d.managed = true;
        if (attribute != ".managed" && attribute != ".unified")
          text.fail("unknown attribute '" + std::string(attribute) + "'");
        if (text.accept('(')) text.until(')'), text.expect(')');
        if (!text.accept(',')) break;
      }
      text.expect(')');
    } else {
      d.type = type_of(word.substr(1));
      if (d.type == Type::none) text.fail("unknown type '" + std::string(word) + "'");
      // ".align" and ".ptr" may follow the type
      while (text.peek() == '.') {
        const auto more = text.word();
        if (more == ".ptr") {
          while (text.peek() == '.')
            if (text.word() == ".align") text.word();
        } else if (more == ".align") {
          Number n;
          if (!parse_number(text.word(), n)) text.fail("bad alignment");
          d.align = static_cast<std::uint32_t>(n.bits);
        } else {
          text.fail("unexpected '" + std::string(more) + "' in a declaration");
        }
      }
      return parse_declarator(text, d);
    }
  }
}

}  // namespace machine
