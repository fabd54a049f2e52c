// A PTX statement and its parts, for analyses of a kernel's text.
#pragma once

#include <cctype>
#include <string_view>
#include <vector>

namespace machine::checks {

struct Statement {
  std::string_view opcode;
  std::vector<std::string_view>
      operands;  // split at commas outside brackets and braces; the guard, if any, is the first
};

inline bool starts_with(std::string_view s, std::string_view prefix) { return s.substr(0, prefix.size()) == prefix; }

inline std::string_view trimmed(std::string_view s) {
  while (!s.empty() && std::isspace(static_cast<unsigned char>(s.front()))) s.remove_prefix(1);
  while (!s.empty() && (std::isspace(static_cast<unsigned char>(s.back())) || s.back() == ';')) s.remove_suffix(1);
  return s;
}

inline Statement split(std::string_view text) {
  Statement s;
  text = trimmed(text);
  if (!text.empty() && text.front() == '@') {
    const auto end = text.find_first_of(" \t");
    s.operands.push_back(text.substr(0, end));  // the guard is a use
    text = end == std::string_view::npos ? "" : trimmed(text.substr(end));
  }
  const auto space = text.find_first_of(" \t");
  s.opcode = text.substr(0, space);
  text = space == std::string_view::npos ? "" : trimmed(text.substr(space));
  int depth = 0;
  std::size_t start = 0;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    const char c = i < text.size() ? text[i] : ',';
    if (c == '{' || c == '[' || c == '(') ++depth;
    if (c == '}' || c == ']' || c == ')') --depth;
    if (c != ',' || (depth > 0 && i < text.size())) continue;
    if (const auto part = trimmed(text.substr(start, i - start)); !part.empty()) s.operands.push_back(part);
    start = i + 1;
  }
  return s;
}

inline std::vector<std::string_view> registers_in(std::string_view text) {
  std::vector<std::string_view> names;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') continue;
    std::size_t end = i + 1;
    while (end < text.size() &&
           (std::isalnum(static_cast<unsigned char>(text[end])) || text[end] == '_' || text[end] == '$'))
      ++end;
    names.push_back(text.substr(i, end - i));
    i = end - 1;
  }
  return names;
}

}  // namespace machine::checks
