#include "runtime/cubin.hpp"

#include <elf.h>

#include <cstring>
#include <optional>
#include <vector>

namespace machine::runtime {
namespace {

constexpr unsigned char kFormatSized = 0x04;    // a record with a payload of its own size
constexpr unsigned char kRegisterCount = 0x2f;  // payload: u32 symbol index, u32 registers

template <class T>
std::optional<T> at(std::string_view bytes, std::uint64_t offset) {
  if (offset > bytes.size() || bytes.size() - offset < sizeof(T)) return std::nullopt;
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

std::string text_at(std::string_view table, std::uint64_t offset) {
  if (offset >= table.size()) return {};
  auto end = table.find('\0', offset);
  return std::string(table.substr(offset, end == std::string_view::npos ? end : end - offset));
}

std::string_view content(std::string_view elf, const Elf64_Shdr& section) {
  if (section.sh_offset > elf.size() || section.sh_size > elf.size() - section.sh_offset) return {};
  return elf.substr(section.sh_offset, section.sh_size);
}

}  // namespace

std::map<std::string, unsigned> registers_in_cubin(std::string_view elf) {
  std::map<std::string, unsigned> registers;
  auto header = at<Elf64_Ehdr>(elf, 0);
  if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0) return registers;
  std::vector<Elf64_Shdr> sections;
  for (unsigned i = 0; i < header->e_shnum; ++i) {
    auto section = at<Elf64_Shdr>(elf, header->e_shoff + std::uint64_t{i} * header->e_shentsize);
    if (!section) return registers;
    sections.push_back(*section);
  }
  if (header->e_shstrndx >= sections.size()) return registers;
  const std::string_view names = content(elf, sections[header->e_shstrndx]);
  std::string_view info, symbols, strings;
  for (const auto& section : sections) {
    if (text_at(names, section.sh_name) == ".nv.info") info = content(elf, section);
    if (section.sh_type == SHT_SYMTAB) {
      symbols = content(elf, section);
      if (section.sh_link < sections.size()) strings = content(elf, sections[section.sh_link]);
    }
  }
  for (std::uint64_t offset = 0; offset + 4 <= info.size();) {
    const auto format = static_cast<unsigned char>(info[offset]);
    const auto attribute = static_cast<unsigned char>(info[offset + 1]);
    const auto size = *at<std::uint16_t>(info, offset + 2);
    if (format == kFormatSized && attribute == kRegisterCount && size >= 8) {
      auto index = at<std::uint32_t>(info, offset + 4);
      auto count = at<std::uint32_t>(info, offset + 8);
      auto symbol = index ? at<Elf64_Sym>(symbols, std::uint64_t{*index} * sizeof(Elf64_Sym)) : std::nullopt;
      if (symbol && count) registers[text_at(strings, symbol->st_name)] = *count;
    }
    offset += 4 + (format == kFormatSized ? size : 0);
  }
  return registers;
}

}  // namespace machine::runtime
