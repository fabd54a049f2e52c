#include "first_guesses.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

namespace machine {
namespace {

// The operand at the front, without the blanks around it; `operands` goes on behind it.
std::string_view next_operand(std::string_view& operands) {
  const auto end = operands.find(',');
  std::string_view operand = operands.substr(0, end);
  operands = end == std::string_view::npos ? std::string_view{} : operands.substr(end + 1);
  constexpr std::string_view kBlanks = " \t\r\n";
  const auto from = operand.find_first_not_of(kBlanks);
  if (from == std::string_view::npos) return {};
  return operand.substr(from, operand.find_last_not_of(kBlanks) - from + 1);
}

// Of the type, which stands last: .u32 has 32.
unsigned bits_of(std::string_view mnemonic) {
  const std::string_view type = mnemonic.substr(mnemonic.rfind('.') + 1);
  unsigned bits = 0;
  if (type.size() > 1) std::from_chars(type.data() + 1, type.data() + type.size(), bits);
  return bits;
}

bool has_modifier(std::string_view mnemonic, std::string_view modifier) {
  for (auto at = mnemonic.find('.'); at != std::string_view::npos;) {
    const auto end = mnemonic.find('.', at + 1);
    if (mnemonic.substr(at + 1, end == std::string_view::npos ? end : end - at - 1) == modifier) return true;
    at = end;
  }
  return false;
}

// Plain, of one value, of memory that a swap can address.
bool can_guess(std::string_view mnemonic) {
  constexpr std::string_view kOthers[] = {"volatile", "relaxed", "acquire", "mmio", "nc", "cv", "param", "const", "local", "v2", "v4", "v8"};
  return std::none_of(std::begin(kOthers), std::end(kOthers), [&](std::string_view m) { return has_modifier(mnemonic, m); });
}

// [base] or [base+offset], taken apart.
std::pair<std::string_view, std::string_view> parts_of(std::string_view address) {
  if (address.size() < 2) return {};
  address = address.substr(1, address.size() - 2);
  const auto offset = std::min(address.find_first_of("+-"), address.size());
  return {address.substr(0, offset), address.substr(offset)};
}

}  // namespace

// A load may name the variable of which the swap has the address in a register.
bool FirstGuesses::same_place(std::string_view load, std::string_view swap) const {
  if (load == swap) return true;
  const auto [variable, there] = parts_of(load);
  const auto [reg, here] = parts_of(swap);
  if (here != there || moves_.count(reg) != 1) return false;
  return moves_.find(reg)->second == variable;
}

void FirstGuesses::look_at(std::string_view mnemonic, std::string_view operands) {
  if (mnemonic.starts_with("ld.")) {
    if (!can_guess(mnemonic)) return;
    const auto reg = next_operand(operands), address = next_operand(operands);
    candidates_.push_back({mnemonic, reg, address, bits_of(mnemonic)});
  } else if (mnemonic.starts_with("mov.")) {
    const auto to = next_operand(operands), from = next_operand(operands);
    moves_.emplace(to, from);
  } else if (mnemonic.starts_with("atom.") && has_modifier(mnemonic, "cas")) {
    next_operand(operands);
    const auto address = next_operand(operands), compared = next_operand(operands);
    swaps_.push_back({mnemonic, compared, address, bits_of(mnemonic)});
  }
}

void FirstGuesses::settle() {
  for (const Use& swap : swaps_) {
    std::vector<std::string_view> left = {swap.reg};
    std::unordered_set<std::string_view> compared = {swap.reg};
    while (!left.empty()) {
      const auto [from, to] = moves_.equal_range(left.back());
      left.pop_back();
      for (auto move = from; move != to; ++move)
        if (compared.insert(move->second).second) left.push_back(move->second);
    }
    for (const Use& load : candidates_)
      if (load.bits == swap.bits && compared.contains(load.reg) && same_place(load.address, swap.address)) loads_.insert(load.mnemonic.data());
  }
}

}  // namespace machine
