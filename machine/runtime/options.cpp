#include "runtime/options.hpp"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "observers/check_options.hpp"
#include "runtime/exit.hpp"

namespace machine::runtime {
namespace {

std::uint64_t number(const std::string& key, const std::string& value) {
  std::uint64_t result = 0;
  auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), result);
  if (error != std::errc{} || end != value.data() + value.size())
    refuse("VERIFY_MACHINE: " + key + "=" + value + " is not a whole number");
  return result;
}

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);)
    if (!part.empty()) parts.push_back(part);
  return parts;
}

void set_architecture(Options& options, const std::string& value) {
  if (value == "sm_80") options.architecture = 80;
  else if (value == "sm_90") options.architecture = 90;
  else refuse("VERIFY_MACHINE: arch=" + value + " is unknown; choose sm_80 or sm_90");
}

void set_tools(Options& options, const std::string& value) {
  for (auto& tool : split(value, ',')) {
    if (tool == "all") {
      options.tools.clear();
      for (const checks::CheckName& check : checks::kChecks)
        if (check.sanitizer) options.tools.emplace_back(check.name);
    } else if (checks::check_named(tool) != nullptr) {
      options.tools.push_back(tool);
    } else if (tool != "none") {
      refuse("VERIFY_MACHINE: tools=" + tool + " is unknown; choose " + checks::check_choices());
    }
  }
}

// `%p` in a path is the process: a program may start others.
std::string path(std::string value) {
  for (auto at = value.find("%p"); at != std::string::npos; at = value.find("%p", at))
    value.replace(at, 2, std::to_string(getpid()));
  return value;
}

// A value may hold a line break, as names of files may: it is spelled like one in C, and so is a backslash.
std::string unescaped(const std::string& value) {
  std::string result;
  for (std::size_t i = 0; i < value.size(); ++i) {
    const bool escape = value[i] == '\\' && i + 1 < value.size();
    result += !escape ? value[i] : value[++i] == 'n' ? '\n' : value[i];
  }
  return result;
}

void set(Options& options, const std::string& key, const std::string& value) {
  if (key == "arch") set_architecture(options, value);
  else if (key == "tools") set_tools(options, value);
  else if (key == "seed") options.seed = number(key, value);
  else if (key == "schedules") options.schedules = static_cast<unsigned>(number(key, value));
  else if (key == "strict") options.strict = number(key, value) != 0;
  else if (key == "json") options.json = path(value);
  else if (key == "log_file") options.log_file = path(value);
  else if (key == "print_limit") options.print_limit = number(key, value);
  else if (key == "launch_timeout") options.launch_timeout = static_cast<int>(number(key, value));
  else if (key == "kernel_name") options.kernel_name = value;
  else if (key == "unpacked") options.unpacked = value;
  else if (key == "threads") options.threads = static_cast<unsigned>(number(key, value));
  else if (key == "memory") options.memory = number(key, value);
  else if (key == "api_errors") options.report_api_errors = number(key, value) != 0;
  else if (key == "timing") options.timing = path(value);
  else if (key == "program") options.program = value;
  else if (key.starts_with("check.")) options.checks[key.substr(6)] = value;
  else refuse("VERIFY_MACHINE: unknown option '" + key + "'");
}

Options read() {
  Options options;
  const char* variable = std::getenv("VERIFY_MACHINE");
  std::string text = variable ? variable : "";
  if (text.starts_with("@")) {
    std::ifstream file(text.substr(1));
    if (!file) refuse("VERIFY_MACHINE: cannot read " + text.substr(1));
    std::ostringstream content;
    content << file.rdbuf();
    text = content.str();
  }
  for (auto& line : split(text, '\n')) {
    auto equals = line.find('=');
    if (equals == std::string::npos) refuse("VERIFY_MACHINE: '" + line + "' is not key=value");
    set(options, line.substr(0, equals), unescaped(line.substr(equals + 1)));
  }
  return options;
}

}  // namespace

bool Options::has_tool(const std::string& name) const {
  return std::find(tools.begin(), tools.end(), name) != tools.end();
}

const Options& options() {
  static const Options* const once = new Options(read());  // still asked when static objects are gone
  return *once;
}

}  // namespace machine::runtime
