// Which checks there are, and which of them a run has.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>

namespace machine::checks {

struct CheckOptions {
#define CHECK(name, type, sanitizer) bool name = false;
#include "observers/checks.inc"
#undef CHECK
  std::uint64_t row_bytes = 0;  // traffic: rows of this size in every buffer that has no registered regions; 0: none

  bool any() const;
  // Whether a finding of this check is wanted. One of no check is.
  bool wants(std::string_view check) const;
};

struct CheckName {
  std::string_view name;
  bool CheckOptions::* chosen;
  bool sanitizer;  // one of those that `all` stands for
};
inline constexpr CheckName kChecks[] = {
#define CHECK(name, type, sanitizer) {#name, &CheckOptions::name, sanitizer},
#include "observers/checks.inc"
#undef CHECK
};

// Null when there is none of this name.
const CheckName* check_named(std::string_view name);
// What may be asked for: "memcheck, ..., all or none".
std::string check_choices();

// `tools` are names of checks, or all. `settings` are the `check.` options: row_bytes=N. Throws std::invalid_argument
// with one line for what it does not know.
CheckOptions parse_options(std::span<const std::string> tools, const std::map<std::string, std::string>& settings);

}  // namespace machine::checks
