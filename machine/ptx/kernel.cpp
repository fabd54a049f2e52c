#include "exec/kernel.hpp"
#include "memory/round_up.hpp"

#include <algorithm>

#include "ptx/declaration.hpp"

namespace machine {
namespace {

// A statement as it stands in a report: nvcc spreads a call over many lines.
std::string one_line(std::string_view text) {
  std::string line;
  for (const char c : text) {
    const bool space = c == ' ' || c == '\t' || c == '\n' || c == '\r';
    if (!space) line += c;
    else if (!line.empty() && line.back() != ' ') line += ' ';
  }
  return line;
}

// Static variables that `body` declares, found without parsing the instructions around them.
void scan_shared(const ModuleText& module, const FunctionText& f, SharedLayout& layout) {
  const std::string_view body(module.text.data() + f.body_begin, f.body_end - f.body_begin);
  for (std::size_t at = body.find(".shared ."); at != std::string_view::npos; at = body.find(".shared .", at + 1)) {
    const char before = at == 0 ? '\n' : body[at - 1];
    if (before != '\n' && before != '\t' && before != ' ' && before != ';' && before != '{') continue;
    Scanner text(module.text, f.body_begin + at, f.body_end, f.body_line);
    text.word();
    do {
      const auto d = parse_declaration(text);
      add_shared(layout, d.name, d.bytes, d.align);
    } while (text.accept(','));
  }
  for (const auto& v : module.shared)
    if (!v.dynamic && body.find(v.name) != std::string_view::npos) add_shared(layout, v.name, v.size, v.align);
}

}  // namespace

void add_shared(SharedLayout& layout, std::string_view name, std::uint64_t size, std::uint32_t align) {
  for (const auto& v : layout.variables)
    if (v.name == name) return;
  std::uint64_t base = 0;
  if (!layout.variables.empty()) {
    const auto& last = layout.variables.back();
    base = last.base + last.size + round_up(std::max<std::uint64_t>({last.size, size, 1024}), 128);
  }
  base = round_up(base, std::max(align, 128u));
  if (base + size > (1u << 28)) throw PtxError("shared variable '" + std::string(name) + "' is too large");
  layout.variables.push_back(Object{.id = 0,
                                    .kind = ObjectKind::shared,
                                    .state = ObjectState::live,
                                    .base = base,
                                    .size = size,
                                    .align = align,
                                    .name = std::string(name),
                                    .allocated = 0,
                                    .freed = 0});
  layout.declared = static_cast<std::uint32_t>(round_up(layout.declared, align) + size);
  layout.extent = static_cast<std::uint32_t>(base + size);
  layout.dynamic_base = static_cast<std::uint32_t>(round_up(layout.extent + std::max<std::uint64_t>(size, 1024), 1024));
}

KernelImpl::KernelImpl(const ModuleText& module, const FunctionText& text, const Options& options)
    : module_(module), text_(text), options_(options), name_(text.name), attributes_(text.attributes) {
  std::uint64_t offset = 0;
  for (const auto& f : text.signature.formals) {
    offset = round_up(offset, f.align);
    params_.push_back({std::string(f.name), static_cast<std::uint32_t>(offset), f.bytes, f.align});
    offset += f.bytes;
  }
  attributes_.param_bytes = static_cast<std::uint32_t>(offset);
  scan_shared(module, text, shared_);
  const std::string_view body(module.text.data() + text.body_begin, text.body_end - text.body_begin);
  if (body.find("call") != std::string_view::npos)
    for (const auto& f : module.functions)
      if (!f.is_kernel && f.has_body) scan_shared(module, f, shared_);
  // as the hardware hands it out
  attributes_.static_shared = static_cast<std::uint32_t>(round_up(shared_.declared, 16));
  // Local arrays: by declaration as well, so that attributes need no decoding.
  for (std::size_t at = body.find(".local .align"); at != std::string_view::npos;
       at = body.find(".local .align", at + 1)) {
    Scanner cursor(module.text, text.body_begin + at, text.body_end, text.body_line);
    cursor.word();
    attributes_.local_bytes += static_cast<std::uint32_t>(parse_declaration(cursor).bytes);
  }
}

const Program& KernelImpl::program() const {
  std::lock_guard guard(lock_);
  if (!program_) program_ = decode_program(module_, text_, shared_, params_, options_);
  return *program_;
}

Location KernelImpl::location(std::uint32_t pc) const {
  const Program& p = program();
  Location result;
  if (pc >= p.statements.size()) return result;
  const auto& s = p.statements[pc];
  result.ptx_line = s.line;
  result.text = one_line(s.text);
  unsigned guard = 0;
  for (auto at = s.location; at != 0 && guard < 64; at = p.positions[at].inlined_at, ++guard) {
    const auto& position = p.positions[at];
    auto file = module_.files.find(position.file);
    result.lines.push_back(
        {std::string(position.function), file == module_.files.end() ? std::string() : file->second, position.line});
  }
  return result;
}

}  // namespace machine
