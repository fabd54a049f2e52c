#include "observers/volatile_updates.hpp"

#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "exec/machine.hpp"
#include "observers/ptx_statement.hpp"

namespace machine::checks {

namespace {

// Registers that an instruction without a memory operand gives on, and to which.
struct Move {
  std::vector<std::string> from, to;
};

std::vector<std::string> names(std::string_view operand) {
  std::vector<std::string> all;
  for (std::string_view name : registers_in(operand)) all.emplace_back(name);
  return all;
}

}  // namespace

bool VolatileUpdates::is_update(const Kernel& kernel, std::uint32_t pc) {
  if (read_) return stores_.count(pc) != 0;
  read_ = true;
  std::unordered_set<std::string> loaded;
  std::vector<Move> moves;
  std::vector<std::pair<std::uint32_t, std::vector<std::string>>> stores;
  for (std::uint32_t at = 0;; ++at) {
    const Location location = kernel.location(at);
    if (location.text.empty() && location.ptx_line == 0) break;
    const Statement s = split(location.text);
    const std::size_t first = !s.operands.empty() && s.operands[0].front() == '@' ? 1 : 0;
    if (s.operands.size() < first + 2) continue;
    if (starts_with(s.opcode, "ld.volatile")) {
      for (std::string& name : names(s.operands[first])) loaded.insert(std::move(name));
    } else if (starts_with(s.opcode, "st.volatile")) {
      stores.emplace_back(at, names(s.operands[first + 1]));
    } else if (!starts_with(s.opcode, "ld.") && !starts_with(s.opcode, "st.") && !starts_with(s.opcode, "setp") &&
               !starts_with(s.opcode, "atom") && !starts_with(s.opcode, "call")) {
      Move move{{}, names(s.operands[first])};
      for (std::size_t i = first + 1; i < s.operands.size(); ++i)
        for (std::string& name : names(s.operands[i])) move.from.push_back(std::move(name));
      moves.push_back(std::move(move));
    }
  }
  const auto any_loaded = [&](const std::vector<std::string>& registers) {
    for (const std::string& name : registers)
      if (loaded.count(name) != 0) return true;
    return false;
  };
  for (std::size_t before = 0; before != loaded.size();) {
    before = loaded.size();
    for (const Move& move : moves)
      if (any_loaded(move.from)) loaded.insert(move.to.begin(), move.to.end());
  }
  for (const auto& [at, registers] : stores)
    if (any_loaded(registers)) stores_.insert(at);
  return stores_.count(pc) != 0;
}

}  // namespace machine::checks
