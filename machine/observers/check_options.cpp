#include "observers/check_options.hpp"

#include <algorithm>
#include <charconv>
#include <stdexcept>

namespace machine::checks {

bool CheckOptions::any() const {
  return std::any_of(std::begin(kChecks), std::end(kChecks), [&](const CheckName& c) { return this->*c.chosen; });
}

bool CheckOptions::wants(std::string_view check) const {
  const CheckName* known = check_named(check);
  return known == nullptr || this->*known->chosen;
}

const CheckName* check_named(std::string_view name) {
  const auto* at = std::find_if(std::begin(kChecks), std::end(kChecks), [&](const auto& c) { return c.name == name; });
  return at != std::end(kChecks) ? at : nullptr;
}

std::string check_choices() {
  std::string names;
  for (const CheckName& check : kChecks) names += std::string(check.name) + ", ";
  return names + "all or none";
}

CheckOptions parse_options(std::span<const std::string> tools, const std::map<std::string, std::string>& settings) {
  CheckOptions options;
  for (const std::string& tool : tools) {
    if (tool == "none") continue;
    const CheckName* named = check_named(tool);
    if (tool != "all" && named == nullptr)
      throw std::invalid_argument("unknown tool '" + tool + "': use " + check_choices());
    for (const CheckName& check : kChecks)
      if (&check == named || (tool == "all" && check.sanitizer)) options.*check.chosen = true;
  }
  for (const auto& [key, value] : settings) {
    if (key != "row_bytes") throw std::invalid_argument("unknown check option '" + key + "'");
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), options.row_bytes);
    if (error != std::errc() || end != value.data() + value.size())
      throw std::invalid_argument("check.row_bytes: '" + value + "' is not a number of bytes");
  }
  return options;
}

}  // namespace machine::checks
