// Directives inside a function: registers, its variables and parameter areas, and the source lines of what follows.
#include "memory/round_up.hpp"
#include "ptx/declaration.hpp"
#include "ptx/decoder.hpp"

namespace machine {

void Decoder::directive(Scanner& text, std::string_view word) {
  if (word == ".loc") return location(text);
  if (word == ".reg") return declare_registers(text);
  if (word == ".local" || word == ".shared" || word == ".param") return declare_memory(text, word);
  if (word == ".pragma") {
    text.string();
    text.expect(';');
    return;
  }
  if (word == ".maxntid" || word == ".minnctapersm" || word == ".reqntid" || word == ".maxnreg")
    text.fail("'" + std::string(word) + "' inside a body");
  text.fail("kernel '" + program.kernel + "': unknown directive '" + std::string(word) + "'");
}

void Decoder::location(Scanner& text) {
  auto number = [&] {
    Number n;
    const auto word = text.word();
    if (!parse_number(word, n)) text.fail("bad .loc number '" + std::string(word) + "'");
    return static_cast<std::uint32_t>(n.bits);
  };
  SourcePosition position;
  position.file = number();
  position.line = number();
  const auto column = number();
  while (text.accept(',')) {
    const auto word = text.word();
    if (word == "function_name") {
      position.function = text.word();
      if (text.accept('+')) number();
    } else if (word == "inlined_at") {
      const auto file = number();
      const auto line = number();
      const auto col = number();
      // The call site is the position last seen with these numbers, which may be inlined itself.
      auto found = program.position_index.find({file, line, col});
      if (found != program.position_index.end()) {
        position.inlined_at = found->second;
      } else {
        program.positions.push_back({file, line, 0, {}});
        position.inlined_at = static_cast<std::uint32_t>(program.positions.size() - 1);
      }
    } else {
      text.fail("unknown .loc attribute '" + std::string(word) + "'");
    }
  }
  // Code that the compiler joined or made up has line 0; the line before it says more than none.
  if (position.line == 0) return;
  program.positions.push_back(position);
  location_ = static_cast<std::uint32_t>(program.positions.size() - 1);
  program.position_index[{position.file, position.line, column}] = location_;
}

void Decoder::declare_registers(Scanner& text) {
  Declaration first;
  bool more = false;
  do {
    const auto d = more ? parse_declarator(text, first) : parse_declaration(text);
    first = d;
    more = true;
    const unsigned bytes = bytes_of(d.type);
    if (d.vector != 1 || d.is_array) text.fail("vector registers are not supported");
    if (d.count_range != 0) {
      scopes_.back().register_sets.push_back({d.name, d.count_range, d.type});
    } else {
      Variable v;
      v.kind = Variable::reg;
      v.type = d.type;
      v.bytes = static_cast<std::uint8_t>(bytes);
      scopes_.back().names[d.name] = v;
      if (bytes == 16) declare_halves(scopes_.back(), d.name);
    }
  } while (text.accept(','));
  text.expect(';');
}

void Decoder::declare_memory(Scanner& text, std::string_view space) {
  do {
    const auto d = parse_declaration(text);
    Variable v;
    v.size = d.bytes;
    v.type = d.type;
    if (space == ".local") {
      v.kind = Variable::local;
      v.address = round_up(function.local.bytes, std::max(d.align, 4u));
      if (v.address + d.bytes > (1u << 24)) text.fail("local array '" + std::string(d.name) + "' is too large");
      function.local.bytes = static_cast<std::uint32_t>(round_up(static_cast<std::uint32_t>(v.address + d.bytes), 4));
      function.local.arrays.push_back(Object{.id = 0,
                                             .kind = ObjectKind::local,
                                             .state = ObjectState::live,
                                             .base = v.address,
                                             .size = d.bytes,
                                             .align = d.align,
                                             .name = std::string(d.name),
                                             .allocated = 0,
                                             .freed = 0});
    } else if (space == ".shared") {
      v.kind = Variable::shared;
      bool found = false;
      for (const auto& s : program.shared->variables)
        if (s.name == d.name) v.address = s.base, found = true;
      if (!found && d.open_array)
        v.kind = Variable::dynamic_shared, v.address = program.shared->dynamic_base, found = true;
      if (!found) text.fail("shared variable '" + std::string(d.name) + "' has no place");
    } else {
      v.kind = Variable::param_area;
      if (d.bytes > (1u << 16)) text.fail("parameter '" + std::string(d.name) + "' is too large");
      ParamArea area;
      area.name = d.name;
      area.bytes = round_up(static_cast<std::uint32_t>(d.bytes), 4);
      area.slot = slot(Bank::registers, function.frame_bytes);
      function.frame_bytes += area.bytes / 4 * 128;
      v.slot = static_cast<Slot>(area_list_.size());
      area_list_.push_back(area);
    }
    scopes_.back().names[d.name] = v;
  } while (text.accept(','));
  text.expect(';');
}

}  // namespace machine
