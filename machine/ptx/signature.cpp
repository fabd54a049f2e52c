#include "exec/signature.hpp"

#include "ptx/scanner.hpp"

#include <algorithm>
#include <string>

#include "ptx/declaration.hpp"

namespace machine {
namespace {

bool alike(const Formal& a, const Formal& b) { return a.is_register == b.is_register && a.bytes == b.bytes; }

}  // namespace

bool Signature::fits(const Signature& other) const {
  return std::equal(formals.begin(), formals.end(), other.formals.begin(), other.formals.end(), alike) &&
         std::equal(results.begin(), results.end(), other.results.begin(), other.results.end(), alike);
}

std::vector<Formal> parse_formals(Scanner& text) {
  std::vector<Formal> list;
  text.expect('(');
  if (text.accept(')')) return list;
  do {
    const auto space = text.word();
    if (space != ".param" && space != ".reg") text.fail("expected .param or .reg, found '" + std::string(space) + "'");
    if (list.size() >= 4096) text.fail("too many parameters");
    const auto d = parse_declaration(text);
    if (d.bytes > (1u << 20)) text.fail("parameter '" + std::string(d.name) + "' is too large");
    list.push_back({d.name, d.type, static_cast<std::uint32_t>(d.bytes), d.align, space == ".reg"});
  } while (text.accept(','));
  text.expect(')');
  return list;
}

Signature parse_prototype(Scanner& text) {
  Signature s;
  if (text.peek() == '(') s.results = parse_formals(text);
  if (text.word().empty()) text.fail("a prototype has no name or '_'");
  if (text.peek() == '(') s.formals = parse_formals(text);
  while (!text.accept(';')) {
    const auto word = text.word();
    if (word == ".noreturn") continue;
    if (word != ".abi_preserve" && word != ".abi_preserve_control")
      text.fail("unknown directive '" + std::string(word) + "' of a prototype");
    Number n;
    if (!parse_number(text.word(), n)) text.fail("expected a number behind '" + std::string(word) + "'");
  }
  return s;
}

}  // namespace machine
