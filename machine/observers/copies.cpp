#include "observers/copies.hpp"

#include "exec/machine.hpp"
#include "observers/ptx_statement.hpp"

namespace machine::checks {

CopyAnalysis::CopyAnalysis(const Kernel& kernel) {
  std::unordered_map<std::string, std::uint32_t> numbers;
  std::vector<char> used;             // by register: something but a store or a copy uses it
  std::vector<std::uint32_t> source;  // by register: the register that it copies, itself otherwise
  const auto number = [&](std::string_view name) {
    const auto [at, fresh] = numbers.try_emplace(std::string(name), static_cast<std::uint32_t>(numbers.size()));
    if (fresh) used.push_back(0), source.push_back(at->second);
    return at->second;
  };
  const auto use = [&](std::string_view operand) {
    for (std::string_view name : registers_in(operand)) used[number(name)] = 1;
  };
  for (std::uint32_t pc = 0;; ++pc) {
    const Location location = kernel.location(pc);
    if (location.text.empty() && location.ptx_line == 0) break;
    const Statement s = split(location.text);
    const std::size_t guard = !s.operands.empty() && s.operands[0].front() == '@' ? 1 : 0;
    if (guard != 0) use(s.operands[0]);
    const bool load = starts_with(s.opcode, "ld.") && !starts_with(s.opcode, "ld.param");
    const bool store = starts_with(s.opcode, "st.") && !starts_with(s.opcode, "st.param");
    if (s.operands.size() < guard + 2) {
      for (std::size_t i = guard; i < s.operands.size(); ++i) use(s.operands[i]);
      continue;
    }
    const std::string_view first = s.operands[guard], second = s.operands[guard + 1];
    if (load || store) {
      Move& move = moves_[pc];
      move.pure = load;
      for (std::string_view name : registers_in(load ? first : second)) move.registers.push_back(number(name));
      use(load ? second : first);
    } else if (starts_with(s.opcode, "mov.") && registers_in(first).size() == 1 && second.front() == '%' &&
               first.front() == '%') {
      const std::uint32_t to = number(first), from = number(second);
      if (source[to] == to) source[to] = from;
      else used[from] = 1;  // several sources: not followed
    } else {
      for (std::size_t i = guard + 1; i < s.operands.size(); ++i) use(s.operands[i]);
      if (first.front() == '[' || starts_with(s.opcode, "call")) use(first);
    }
  }
  const auto root = [&](std::uint32_t r) {
    for (unsigned steps = 0; source[r] != r && steps < 64; ++steps) r = source[r];
    return r;
  };
  for (std::uint32_t r = 0; r < used.size(); ++r)
    if (used[r] != 0) used[root(r)] = 1;
  for (auto& [pc, move] : moves_)
    for (std::uint32_t& r : move.registers) {
      r = root(r);
      if (used[r] != 0) move.pure = false;
    }
}

const CopyAnalysis::Move* CopyAnalysis::at(std::uint32_t pc) const {
  const auto found = moves_.find(pc);
  return found == moves_.end() ? nullptr : &found->second;
}

}  // namespace machine::checks
