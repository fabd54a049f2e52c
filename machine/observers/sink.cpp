#include "observers/sink.hpp"

#include <cxxabi.h>

#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <memory>

#include "exec/machine.hpp"
#include "memory/address_space.hpp"

namespace machine::checks {

namespace {

std::string hex(std::uint64_t value) {
  char text[32];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(value));
  return text;
}

// Headers of the toolkit: a finding in one of them is shown where the program called it.
bool in_toolkit(const std::string& file) {
  return (file.find("cuda") != std::string::npos || file.find("nvidia/cu") != std::string::npos) &&
         file.find("/include/") != std::string::npos;
}

std::string_view kind_words(ObjectKind kind) {
  switch (kind) {
    case ObjectKind::global: return "device allocation";
    case ObjectKind::heap: return "device heap allocation";
    case ObjectKind::managed: return "managed allocation";
    case ObjectKind::pinned: return "pinned host allocation";
    case ObjectKind::registered: return "registered host memory";
    case ObjectKind::device_symbol: return "__device__ symbol";
    case ObjectKind::constant_symbol: return "__constant__ symbol";
    case ObjectKind::param: return "kernel parameters";
    case ObjectKind::shared: return "__shared__ variable";
    case ObjectKind::dynamic_shared: return "dynamic shared memory";
    case ObjectKind::local: return "local array";
  }
  return "object";
}

}  // namespace

std::string demangled(const std::string& name) {
  if (name.rfind("_Z", 0) != 0) return name;  // a plain "f" is no encoding of float
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text(abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status),
                                                    std::free);
  return status == 0 && text ? text.get() : name;
}

std::string one_line(std::string_view text) {
  std::string line, word;
  const auto in_name = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '$'; };
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t start = i;
    while (i < text.size() && in_name(text[i])) ++i;
    if (i > start) {
      line += demangled(std::string(text.substr(start, i - start)));
      continue;
    }
    const bool blank = std::isspace(static_cast<unsigned char>(text[i]));
    if (!blank) line += text[i];
    else if (!line.empty() && line.back() != ' ') line += ' ';
    ++i;
  }
  while (!line.empty() && line.back() == ' ') line.pop_back();
  return line;
}

report::Site site_of(const LaunchInfo& launch, std::uint64_t block, unsigned warp, unsigned lane, std::uint32_t pc) {
  report::Site site;
  site.kernel = demangled(launch.kernel->name());
  site.location = launch.kernel->location(pc);
  site.location.text = one_line(site.location.text);
  auto& lines = site.location.lines;
  std::size_t library = 0;
  while (library < lines.size() && in_toolkit(lines[library].file)) ++library;
  if (library < lines.size()) lines.erase(lines.begin(), lines.begin() + static_cast<long>(library));
  site.has_thread = true;
  const auto place = [](std::uint64_t linear, const Dim3& extent) {
    return Dim3{static_cast<std::uint32_t>(linear % extent.x), static_cast<std::uint32_t>(linear / extent.x % extent.y),
                static_cast<std::uint32_t>(linear / extent.x / extent.y)};
  };
  site.block = place(block, launch.grid);
  site.thread = place(std::uint64_t{warp} * 32 + lane, launch.block);
  return site;
}

std::string describe_object(const Object& object) {
  std::string text(kind_words(object.kind));
  if (!object.name.empty()) text += " " + demangled(object.name);
  text += " of " + std::to_string(object.size) + " bytes";
  if (object.name.empty() && object.kind <= ObjectKind::registered) text += " at " + hex(object.base);
  return text;
}

std::string describe_address(std::uint64_t address, const Object* object) {
  if (!object) return hex(address);
  const std::string name = object->name.empty() ? describe_object(*object) : demangled(object->name);
  if (object->contains(address))
    return name + " + " + std::to_string(address - object->base) + " (" + hex(address) + ")";
  if (address >= object->base + object->size) {
    const std::uint64_t past = address - object->base - object->size;
    return std::to_string(past) + (past == 1 ? " byte" : " bytes") + " past the end of " + name + " (" + hex(address) +
           ")";
  }
  return std::to_string(object->base - address) + " bytes before " + name + " (" + hex(address) + ")";
}

std::string_view space_name(Space space) {
  switch (space) {
    case Space::global: return "__global__";
    case Space::shared: return "__shared__";
    case Space::local: return "__local__";
    case Space::param: return "__param__";
    case Space::constant: return "__constant__";
  }
  return "memory";
}

}  // namespace machine::checks
