#include "observers/strong_uses.hpp"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "exec/machine.hpp"
#include "observers/ptx_statement.hpp"

namespace machine::checks {

namespace {

using Names = std::vector<std::string>;

// Registers that an instruction without a memory operand gives on, and to which.
struct Move {
  Names from, to;
};

struct Use {
  std::uint32_t pc;
  Names registers;
};

Names names(std::string_view operand) {
  Names all;
  for (std::string_view name : registers_in(operand)) all.emplace_back(name);
  return all;
}

bool any_of(const Names& registers, const std::unordered_set<std::string>& set) {
  return std::any_of(registers.begin(), registers.end(), [&](const std::string& name) { return set.count(name) != 0; });
}

// Adds what comes from `reached` by moves.
void follow(const std::vector<Move>& moves, std::unordered_set<std::string>& reached) {
  for (std::size_t before = 0; before != reached.size();) {
    before = reached.size();
    for (const Move& move : moves)
      if (any_of(move.from, reached)) reached.insert(move.to.begin(), move.to.end());
  }
}

// Whether a value is compared by it, or goes to other lanes or functions.
bool decides(std::string_view opcode) {
  constexpr std::string_view deciding[] = {"setp", "set.", "slct", "shfl", "vote", "match", "redux", "call"};
  return (starts_with(opcode, "atom") && opcode.find(".cas.") != std::string_view::npos) ||
         std::any_of(std::begin(deciding), std::end(deciding),
                     [&](std::string_view start) { return starts_with(opcode, start); });
}

}  // namespace

unsigned StrongUses::atomic_bytes(std::uint32_t pc) {
  if (bytes_.size() <= pc) bytes_.resize(pc + 1);
  if (bytes_[pc] != 0) return bytes_[pc] - 1u;
  const std::string text = kernel_->location(pc).text;
  const std::string_view opcode = split(text).opcode, type = opcode.substr(opcode.rfind('.') + 1);
  const auto digits = std::min(type.find_first_of("0123456789"), type.size());
  unsigned bits = 0;
  std::from_chars(type.data() + digits, type.data() + type.size(), bits);
  bytes_[pc] = static_cast<std::uint8_t>(bits / 8 + 1);
  return bits / 8;
}

void StrongUses::read() {
  if (std::exchange(read_, true)) return;
  std::vector<Move> moves;
  std::vector<Use> loads, stores, exchanges;
  Names decided;
  std::unordered_map<std::string, unsigned> mentioned;
  for (std::uint32_t at = 0;; ++at) {
    const Location location = kernel_->location(at);
    if (location.text.empty() && location.ptx_line == 0) break;
    const Statement s = split(location.text);
    for (std::string_view operand : s.operands)
      for (std::string& name : names(operand)) ++mentioned[std::move(name)];
    const std::size_t first = !s.operands.empty() && s.operands[0].front() == '@' ? 1 : 0;
    if (s.operands.size() < first + 2) continue;
    if (starts_with(s.opcode, "ld.volatile")) {
      loads.push_back({at, names(s.operands[first])});
    } else if (starts_with(s.opcode, "st.volatile")) {
      stores.push_back({at, names(s.operands[first + 1])});
    } else if (decides(s.opcode)) {
      for (std::size_t i = first + 1; i < s.operands.size(); ++i)
        for (std::string& name : names(s.operands[i])) decided.push_back(std::move(name));
    } else if (starts_with(s.opcode, "atom")) {
      if (s.opcode.find(".exch.") != std::string_view::npos) exchanges.push_back({at, names(s.operands[first])});
    } else if (!starts_with(s.opcode, "ld.") && !starts_with(s.opcode, "st.") && !starts_with(s.opcode, "red.")) {
      Move move{{}, names(s.operands[first])};
      for (std::size_t i = first + 1; i < s.operands.size(); ++i)
        for (std::string& name : names(s.operands[i])) move.from.push_back(std::move(name));
      moves.push_back(std::move(move));
    }
  }
  std::unordered_set<std::string> loaded;
  for (const Use& load : loads) loaded.insert(load.registers.begin(), load.registers.end());
  follow(moves, loaded);
  for (const Use& store : stores)
    if (any_of(store.registers, loaded)) updates_.insert(store.pc);
  for (const Use& load : loads) {
    std::unordered_set<std::string> reached(load.registers.begin(), load.registers.end());
    follow(moves, reached);
    if (any_of(decided, reached)) flags_.insert(load.pc);
  }
  for (const Use& exchange : exchanges)
    if (exchange.registers.empty() || mentioned[exchange.registers.front()] == 1) blind_exchanges_.insert(exchange.pc);
}

}  // namespace machine::checks
