#include "ptx/first_guesses.hpp"

#include <algorithm>
#include <charconv>

namespace machine {
namespace {

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
  constexpr std::string_view kOthers[] = {"volatile", "relaxed", "acquire", "mmio", "nc", "cv",
                                          "param",    "const",   "local",   "v2",   "v4", "v8"};
  return std::none_of(std::begin(kOthers), std::end(kOthers),
                      [&](std::string_view m) { return has_modifier(mnemonic, m); });
}

}  // namespace

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

void FirstGuesses::settle(const LinearAddresses& addresses) {
  for (const Use& swap : swaps_) {
    std::vector<std::string_view> left = {swap.reg};
    std::unordered_set<std::string_view> compared = {swap.reg};
    while (!left.empty()) {
      const auto [from, to] = moves_.equal_range(left.back());
      left.pop_back();
      for (auto move = from; move != to; ++move)
        if (compared.insert(move->second).second) left.push_back(move->second);
    }
    const LinearAddress place = addresses.of(swap.address);
    for (const Use& load : candidates_)
      if (load.bits == swap.bits && compared.contains(load.reg) && addresses.of(load.address) == place)
        loads_.insert(load.mnemonic.data());
  }
}

}  // namespace machine
