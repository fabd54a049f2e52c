#include "exec/time_registers.hpp"

#include <algorithm>
#include <iterator>

#include "exec/linear_address.hpp"

namespace machine {
namespace {

bool is_arithmetic(std::string_view mnemonic) {
  constexpr std::string_view kStarts[] = {"mov.", "add.", "sub.", "mul.", "mad.", "shl.", "shr.", "cvt.",
                                          "and.", "or.",  "min.", "max.", "div.", "rem.", "neg.", "abs."};
  return std::any_of(std::begin(kStarts), std::end(kStarts),
                     [&](std::string_view start) { return mnemonic.starts_with(start); });
}

}  // namespace

void TimeRegisters::look_at(std::string_view mnemonic, std::string_view operands) {
  if (!is_arithmetic(mnemonic)) return;
  const auto to = next_operand(operands);
  if (operands.find("%clock") != std::string_view::npos || operands.find("%globaltimer") != std::string_view::npos)
    clocks_.insert(to);
  else statements_.push_back({to, operands});
}

std::unordered_set<std::string_view> TimeRegisters::settle() const {
  auto times = clocks_;
  for (std::size_t before = 0; before != times.size();) {
    before = times.size();
    for (auto [to, operands] : statements_)
      while (!operands.empty())
        if (times.contains(next_operand(operands))) times.insert(to);
  }
  return times;
}

}  // namespace machine
