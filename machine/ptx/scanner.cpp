#include "ptx/scanner.hpp"

#include <bit>
#include <charconv>
#include <cstdlib>
#include <cstring>

#include "exec/machine.hpp"

namespace machine {
namespace {

// What a character can be part of. Texts are megabytes, so they are looked up.
struct Classes {
  bool word[256] = {};   // [A-Za-z0-9_$%.]
  bool plain[256] = {};  // inside braces: no blank, brace, quote or comment
};
constexpr Classes kClassesOf = [] {
  Classes c;
  for (unsigned k = 0; k < 256; ++k) {
    const char x = static_cast<char>(k);
    c.word[k] = (x >= 'a' && x <= 'z') || (x >= 'A' && x <= 'Z') || (x >= '0' && x <= '9') || x == '_' || x == '$' ||
                x == '%' || x == '.';
    c.plain[k] = k > ' ' && x != '/' && x != '{' && x != '}' && x != '"';
  }
  return c;
}();
bool word_char(char c) { return kClassesOf.word[static_cast<unsigned char>(c)]; }
bool plain_char(char c) { return kClassesOf.plain[static_cast<unsigned char>(c)]; }

template <class Int>
bool whole(std::string_view digits, int base, Int& value) {
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
  return error == std::errc() && end == digits.data() + digits.size() && !digits.empty();
}

}  // namespace

void Scanner::fail(const std::string& what) const { throw PtxError("PTX line " + std::to_string(line_) + ": " + what); }

void Scanner::skip_blanks() {
  while (p_ < end_) {
    const char c = *p_;
    if (c == '\n') {
      ++line_, ++p_;
    } else if (c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v') {
      ++p_;
    } else if (c == '/' && p_ + 1 < end_ && p_[1] == '/') {
      while (p_ < end_ && *p_ != '\n') ++p_;
    } else if (c == '/' && p_ + 1 < end_ && p_[1] == '*') {
      p_ += 2;
      while (p_ + 1 < end_ && !(p_[0] == '*' && p_[1] == '/')) {
        if (*p_ == '\n') ++line_;
        ++p_;
      }
      if (p_ + 1 >= end_) fail("a comment is not closed");
      p_ += 2;
    } else {
      return;
    }
  }
}

void Scanner::expect(char c) {
  if (accept(c)) return;
  const char found = raw();
  fail(std::string("expected '") + c + "'" +
       (found ? std::string(", found '") + found + "'" : std::string(", the text ends")));
}

std::string_view Scanner::word() {
  skip();
  const char* start = p_;
  while (p_ < end_) {
    if (word_char(*p_)) {
      ++p_;
    } else if (*p_ == ':' && p_ + 2 < end_ && p_[1] == ':' && word_char(p_[2])) {
      p_ += 2;
    } else {
      break;
    }
  }
  return {start, static_cast<std::size_t>(p_ - start)};
}

std::string_view Scanner::string() {
  expect('"');
  const char* start = p_;
  while (p_ < end_ && *p_ != '"') {
    if (*p_ == '\\' && p_ + 1 < end_) ++p_;
    if (*p_ == '\n') ++line_;
    ++p_;
  }
  if (p_ >= end_) fail("a string is not closed");
  return {start, static_cast<std::size_t>(p_++ - start)};
}

std::string_view Scanner::until(char stop) {
  skip();
  const char* start = p_;
  while (p_ < end_ && *p_ != stop) {
    if (*p_ == '"') {
      string();
      continue;
    }
    if (*p_ == '\n') ++line_;
    ++p_;
  }
  if (p_ >= end_) fail(std::string("expected '") + stop + "', the text ends");
  return {start, static_cast<std::size_t>(p_ - start)};
}

void Scanner::skip_braces() {
  int depth = 1;
  while (depth > 0) {
    while (p_ < end_ && plain_char(*p_)) ++p_;
    skip();
    if (p_ >= end_) fail("a '{' is not closed");
    if (*p_ == '"') {
      string();
      continue;
    }
    if (*p_ == '{') ++depth;
    if (*p_ == '}') --depth;
    ++p_;
  }
}

bool parse_number(std::string_view word, Number& out) {
  if (word.empty() || word[0] < '0' || word[0] > '9') return false;
  if (word.size() >= 2 && word[0] == '0') {
    const char kind = word[1];
    if ((kind == 'f' || kind == 'F') && word.size() == 10) {
      out.kind = Number::float32;
      return whole(word.substr(2), 16, out.bits);
    }
    if ((kind == 'd' || kind == 'D') && word.size() == 18) {
      out.kind = Number::float64;
      return whole(word.substr(2), 16, out.bits);
    }
  }
  if (word.back() == 'U') word.remove_suffix(1);
  out.kind = Number::integer;
  if (word.size() > 2 && (word.substr(0, 2) == "0x" || word.substr(0, 2) == "0X"))
    return whole(word.substr(2), 16, out.bits);
  if (word.size() > 2 && (word.substr(0, 2) == "0b" || word.substr(0, 2) == "0B"))
    return whole(word.substr(2), 2, out.bits);
  if (word.find_first_not_of("0123456789") == std::string_view::npos)
    return whole(word, word.size() > 1 && word[0] == '0' ? 8 : 10, out.bits);
  double value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc() || end != word.data() + word.size()) return false;
  out.kind = Number::float64;
  out.bits = std::bit_cast<std::uint64_t>(value);
  return true;
}

}  // namespace machine
