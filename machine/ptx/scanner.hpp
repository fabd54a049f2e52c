// A cursor over PTX text: words, numbers and punctuation, with the line for messages.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace machine {

class Scanner {
 public:
  Scanner(std::string_view all, std::size_t from, std::size_t to, std::uint32_t line)
      : base_(all.data()), p_(all.data() + from), end_(all.data() + to), line_(line) {}

  bool done() { return skip(), p_ >= end_; }
  char peek() { return skip(), p_ < end_ ? *p_ : '\0'; }
  char raw() const { return p_ < end_ ? *p_ : '\0'; }
  bool accept(char c) {
    if (peek() != c) return false;
    ++p_;
    return true;
  }
  void expect(char c);  // throws PtxError naming the line

  // The longest run of [A-Za-z0-9_$%.] and "::"; empty when the next character begins none.
  std::string_view word();
  std::string_view string();  // the inside of "..."
  // Everything up to (not including) the next `stop` outside of strings.
  std::string_view until(char stop);
  // Skips from just after '{' to just after its '}'.
  void skip_braces();

  std::size_t offset() const { return static_cast<std::size_t>(p_ - base_); }
  std::uint32_t line() const { return line_; }
  [[noreturn]] void fail(const std::string& what) const;

 private:
  void skip() {
    if (p_ < end_ && (static_cast<unsigned char>(*p_) <= ' ' || *p_ == '/')) skip_blanks();
  }
  void skip_blanks();  // and comments
  const char *base_, *p_, *end_;
  std::uint32_t line_;
};

// A number as PTX writes it: 12, 0x1F, 017, 0b101, 12U, 0f3F800000 (float bits), 0d... (double bits), 1.5.
struct Number {
  std::uint64_t bits = 0;  // integers: two's complement; floating: the bits of the double or float
  enum Kind : std::uint8_t { integer, float32, float64 } kind = integer;
};
bool parse_number(std::string_view word, Number& out);

}  // namespace machine
