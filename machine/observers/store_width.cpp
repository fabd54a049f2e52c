#include "observers/store_width.hpp"

#include <charconv>

namespace machine::checks {

namespace {

// Bytes of a type such as f32, b128 or bf16x2; 0 where the word is none.
unsigned bytes_of(std::string_view word) {
  const auto digits = word.find_first_of("0123456789");
  if (digits == std::string_view::npos || (word.substr(0, digits) != "bf" && digits != 1)) return 0;
  if (std::string_view("busf").find(word.front()) == std::string_view::npos) return 0;
  unsigned bits = 0;
  const auto end = std::from_chars(word.data() + digits, word.data() + word.size(), bits).ptr;
  const std::string_view rest = word.substr(static_cast<std::size_t>(end - word.data()));
  return bits / 8 * (rest == "x2" ? 2 : rest.empty() ? 1 : 0);
}

}  // namespace

std::optional<StoreWidth> store_width(std::string_view text) {
  if (text.starts_with('@')) text.remove_prefix(std::min(text.find(' '), text.size() - 1) + 1);
  text = text.substr(0, text.find_first_of(" \t"));
  if (!text.starts_with("st.") && !text.starts_with("atom.") && !text.starts_with("red.")) return std::nullopt;
  unsigned element = 0, components = 1;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find('.'));
    text.remove_prefix(std::min(word.size() + 1, text.size()));
    if (word.size() == 2 && word[0] == 'v' && word[1] >= '2' && word[1] <= '8')
      components = static_cast<unsigned>(word[1] - '0');
    else if (const unsigned bytes = bytes_of(word)) element = bytes;
  }
  if (element == 0) return std::nullopt;
  return StoreWidth{element, element * components};
}

}  // namespace machine::checks
