// The text of an operand: a name, a number, an address in brackets, a list in braces, or a pair p|q.
#include "ptx/decoder.hpp"

namespace machine {
namespace {

Operand read_operand(Scanner& text);

// Behind '{' or '(', up to `close`.
Operand read_list(Scanner& text, char close) {
  Operand o;
  o.kind = Operand::list;
  if (text.accept(close)) return o;
  do {
    if (o.parts.size() > 256) text.fail("an operand list is too long");
    o.parts.push_back(read_operand(text));
  } while (text.accept(','));
  text.expect(close);
  return o;
}

// What follows the base of an address: offsets, each with one sign or two.
void read_offsets(Scanner& text, Operand& o) {
  while (text.peek() == '+' || text.peek() == '-') {
    bool negative = text.accept('-');
    if (!negative) text.accept('+');
    if (text.accept('-')) negative = !negative;
    const auto word = text.word();
    Number n;
    if (!parse_number(word, n) || n.kind != Number::integer)
      text.fail("bad address offset '" + std::string(word) + "'");
    o.offset += static_cast<std::int64_t>(n.bits) * (negative ? -1 : 1);
  }
}

// Behind '[', up to ']'.
Operand read_address(Scanner& text) {
  Operand o;
  o.kind = Operand::address;
  const bool minus = text.accept('-');
  const auto word = text.word();
  Number n;
  if (parse_number(word, n)) {
    o.offset = static_cast<std::int64_t>(n.bits) * (minus ? -1 : 1);
  } else {
    if (word.empty() || minus) text.fail("bad address");
    o.text = word;
    read_offsets(text, o);
  }
  if (text.accept(',')) {  // a tensor map and coordinates
    o.parts.push_back(read_operand(text));
    if (o.parts.back().kind != Operand::list) text.fail("a tensor address needs its coordinates in braces");
  }
  text.expect(']');
  return o;
}

void negate(Number& n) {
  if (n.kind == Number::integer) n.bits = 0 - n.bits;
  else n.bits ^= n.kind == Number::float64 ? std::uint64_t{1} << 63 : std::uint64_t{1} << 31;
}

// A name, with an offset perhaps, a number, or the sink.
Operand read_word(Scanner& text) {
  Operand o;
  o.negated = text.accept('!');
  o.minus = text.accept('-');
  const auto word = text.word();
  if (word.empty()) text.fail(std::string("expected an operand, found '") + text.raw() + "'");
  if (word == "_") return o;
  if (parse_number(word, o.number_value)) {
    o.kind = Operand::number;
    if (o.minus) negate(o.number_value);
    o.minus = false;
    return o;
  }
  o.kind = Operand::name;
  o.text = word;
  if (text.accept('+')) {  // symbol + offset
    Number n;
    if (!parse_number(text.word(), n)) text.fail("bad offset");
    o.offset = static_cast<std::int64_t>(n.bits);
  }
  return o;
}

Operand read_operand(Scanner& text) {
  if (text.accept('{')) return read_list(text, '}');
  if (text.accept('(')) return read_list(text, ')');
  if (text.accept('[')) return read_address(text);
  Operand o = read_word(text);
  if (!text.accept('|')) return o;
  Operand pair;
  pair.kind = Operand::list;
  pair.piped = true;
  pair.parts.push_back(std::move(o));
  pair.parts.push_back(read_operand(text));
  return pair;
}

}  // namespace

Operand Decoder::parse_operand(Scanner& text) { return read_operand(text); }

}  // namespace machine
