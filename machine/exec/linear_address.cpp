#include "exec/linear_address.hpp"

#include <algorithm>
#include <bit>
#include <charconv>
#include <iterator>
#include <numeric>
#include <optional>

namespace machine {
namespace {

constexpr unsigned kDepth = 32;  // of definitions behind one another

std::optional<std::int64_t> number(std::string_view text) {
  bool negative = false;
  while (!text.empty() && (text.front() == '+' || text.front() == '-'))
    negative ^= text.front() == '-', text.remove_prefix(1);
  int base = 10;
  if (text.starts_with("0x") || text.starts_with("0X")) base = 16, text.remove_prefix(2);
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc{} || text.empty() || end != text.data() + text.size()) return std::nullopt;
  return static_cast<std::int64_t>(negative ? 0 - value : value);
}

std::int64_t times(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
}
std::int64_t plus(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}

void add_term(LinearAddress& sum, std::string_view name, std::int64_t factor) {
  const auto at = std::lower_bound(sum.terms.begin(), sum.terms.end(), name,
                                   [](const auto& term, std::string_view n) { return term.first < n; });
  if (at == sum.terms.end() || at->first != name) {
    if (factor != 0) sum.terms.insert(at, {name, factor});
  } else if ((at->second = plus(at->second, factor)) == 0) {
    sum.terms.erase(at);
  }
}

}  // namespace

std::string_view next_operand(std::string_view& operands) {
  const auto end = operands.find(',');
  std::string_view operand = operands.substr(0, end);
  operands = end == std::string_view::npos ? std::string_view{} : operands.substr(end + 1);
  constexpr std::string_view kBlanks = " \t\r\n";
  const auto from = operand.find_first_not_of(kBlanks);
  if (from == std::string_view::npos) return {};
  return operand.substr(from, operand.find_last_not_of(kBlanks) - from + 1);
}

void LinearAddresses::look_at(std::string_view mnemonic, std::string_view operands) {
  constexpr std::string_view kArithmetic[] = {"mov.", "add.", "sub.", "mul.", "mad.", "shl.", "cvt.", "cvta."};
  if (mnemonic.starts_with("st.global.")) {
    stores_.push_back(next_operand(operands));
  } else if (std::any_of(std::begin(kArithmetic), std::end(kArithmetic),
                         [&](std::string_view start) { return mnemonic.starts_with(start); })) {
    const auto to = next_operand(operands);
    statements_.push_back({to, mnemonic, operands});
  }
}

void LinearAddresses::settle(const std::unordered_map<std::string_view, std::uint32_t>& definitions) {
  for (const Definition& statement : statements_)
    if (const auto count = definitions.find(statement.to); count != definitions.end() && count->second == 1)
      definitions_[statement.to] = statement;
}

unsigned LinearAddresses::strides() const {
  constexpr std::uint64_t kLeast = 32, kMost = 4096;
  std::uint64_t all = 0;
  for (const std::string_view store : stores_) {
    std::uint64_t stride = 0;
    for (const auto& [name, factor] : of(store).terms)
      if (factor != 1) stride = std::gcd(stride, static_cast<std::uint64_t>(factor < 0 ? -factor : factor));
    if (std::has_single_bit(stride) && stride >= kLeast && stride <= kMost) all |= stride;
  }
  return static_cast<unsigned>(all);
}

LinearAddress LinearAddresses::of(std::string_view address) const {
  LinearAddress sum;
  if (address.size() < 2) return sum;
  add(sum, address.substr(1, address.size() - 2), 1, 0);
  return sum;
}

// Adds `factor` times the operand: a number, a register, a variable, or one of these with an offset.
void LinearAddresses::add(LinearAddress& sum, std::string_view operand, std::int64_t factor, unsigned depth) const {
  if (const auto value = number(operand)) return void(sum.constant = plus(sum.constant, times(*value, factor)));
  const auto offset = std::min(operand.find_first_of("+-"), operand.size());
  if (offset < operand.size()) {
    const auto value = number(operand.substr(offset));
    if (!value) return add_term(sum, operand, factor);
    sum.constant = plus(sum.constant, times(*value, factor));
    operand = operand.substr(0, offset);
  }
  const auto found = definitions_.find(operand);
  if (found == definitions_.end() || depth == kDepth) return add_term(sum, operand, factor);
  const std::string_view mnemonic = found->second.mnemonic;
  std::string_view rest = found->second.operands;
  const std::string_view a = next_operand(rest), b = next_operand(rest), c = next_operand(rest);
  const auto is = [&](std::string_view start) { return mnemonic.starts_with(start); };
  if (is("mov.") || is("cvta.") || is("cvt.s64.s32") || is("cvt.u64.u32")) return add(sum, a, factor, depth + 1);
  if (is("add.s") || is("add.u")) return add(sum, a, factor, depth + 1), add(sum, b, factor, depth + 1);
  if (is("sub.s") || is("sub.u")) return add(sum, a, factor, depth + 1), add(sum, b, times(factor, -1), depth + 1);
  if (is("shl.b")) {
    if (const auto by = number(b); by && *by >= 0 && *by < 63)
      return add(sum, a, times(factor, std::int64_t{1} << *by), depth + 1);
  } else if (is("mul.lo.") || is("mul.wide.") || is("mad.lo.") || is("mad.wide.")) {
    const auto left = number(a), right = number(b);
    if (left || right) {
      add(sum, right ? a : b, times(factor, right ? *right : *left), depth + 1);
      if (is("mad.")) add(sum, c, factor, depth + 1);
      return;
    }
  }
  add_term(sum, operand, factor);
}

}  // namespace machine
