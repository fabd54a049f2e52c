// What a name in a statement stands for: registers, parameters, variables, functions.
#include "memory/round_up.hpp"
#include "ptx/decoder.hpp"

namespace machine {

Variable* Decoder::find(std::string_view name) {
  for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
    if (auto found = scope->names.find(name); found != scope->names.end()) return &found->second;
    if (Variable* numbered = find_numbered(*scope, name)) return numbered;
  }
  std::optional<Variable> outer = find_in_module(name);
  if (!outer) outer = find_formal(name);
  return outer ? &scopes_.front().names.emplace(name, *outer).first->second : nullptr;
}

// A register of a declaration like %r<9>.
Variable* Decoder::find_numbered(Scope& scope, std::string_view name) {
  if (scope.register_sets.empty()) return nullptr;
  std::size_t digits = name.size();
  while (digits > 0 && name[digits - 1] >= '0' && name[digits - 1] <= '9') --digits;
  if (digits == name.size() || name.size() - digits > 9) return nullptr;
  // A prefix may itself end in digits, as in %r1_<3>; the longest run of digits is what nvcc means, and others are
  // tried.
  for (const auto& set : scope.register_sets) {
    if (name.size() <= set.prefix.size() || name.substr(0, set.prefix.size()) != set.prefix) continue;
    std::uint64_t number = 0;
    bool good = true;
    for (const char c : name.substr(set.prefix.size())) {
      if (c < '0' || c > '9') good = false;
      number = number * 10 + static_cast<unsigned>(c - '0');
    }
    if (!good || number >= set.count) continue;
    Variable v;
    v.kind = Variable::reg;
    v.type = set.type;
    v.bytes = static_cast<std::uint8_t>(bytes_of(set.type));
    auto defined = definitions_.find(name);
    v.single = defined != definitions_.end() && defined->second == 1;
    if (v.bytes == 16) declare_halves(scope, name);
    return &scope.names.emplace(name, v).first->second;
  }
  return nullptr;
}

// A parameter of the kernel, or a variable of the module.
std::optional<Variable> Decoder::find_in_module(std::string_view name) const {
  const auto variable = [](Variable::Kind kind, std::uint64_t address, std::uint64_t size) {
    Variable v;
    v.kind = kind;
    v.address = address;
    v.size = size;
    return v;
  };
  if (function.is_kernel)
    for (const auto& p : program.params)
      if (p.name == name) return variable(Variable::kernel_param, p.offset, p.size);
  if (auto found = module.global_by_name.find(name); found != module.global_by_name.end()) {
    const auto& g = module.globals[found->second];
    return variable(Variable::global, g.object->base, g.object->size);
  }
  for (const auto& s : program.shared->variables)
    if (s.name == name) return variable(Variable::shared, s.base, s.size);
  for (const auto& s : module.shared)
    if (s.name == name && s.dynamic) return variable(Variable::dynamic_shared, program.shared->dynamic_base, 0);
  return std::nullopt;
}

// A formal parameter or result of the device function.
std::optional<Variable> Decoder::find_formal(std::string_view name) {
  for (const auto* areas : {&function.formals, &function.results})
    for (const auto& area : *areas) {
      if (area.name != name) continue;
      Variable v;
      v.kind = area.is_register ? Variable::reg : Variable::param_area;
      v.slot = static_cast<Slot>(area_list_.size());
      if (area.is_register) {
        v.slot = area.slot;
        v.bytes = static_cast<std::uint8_t>(area.bytes);
        v.type = area.bytes == 8 ? Type::b64 : area.bytes == 2 ? Type::b16 : Type::b32;
        v.allocated = true;
      } else {
        area_list_.push_back(area);
      }
      return v;
    }
  return std::nullopt;
}

void Decoder::declare_halves(Scope& scope, std::string_view name) {
  Variable half;
  half.kind = Variable::reg;
  half.type = Type::b64;
  half.bytes = 8;
  for (const auto* suffix : {".low", ".high"})
    scope.names.emplace(half_names_.emplace_back(std::string(name) + suffix), half);
}

std::array<Operand, 2> Decoder::halves(const Operand& o) {
  const Variable* v = o.kind == Operand::name ? find(o.text) : nullptr;
  if (v == nullptr || v->kind != Variable::reg || v->bytes != 16)
    fail("'" + std::string(o.text) + "' is no register of 128 bits");
  std::array<Operand, 2> parts{o, o};
  parts[0].text = half_names_.emplace_back(std::string(o.text) + ".low");
  parts[1].text = half_names_.emplace_back(std::string(o.text) + ".high");
  return parts;
}

ParamArea* Decoder::area(std::string_view name) {
  Variable* v = find(name);
  if (v == nullptr || v->kind != Variable::param_area) return nullptr;
  return &area_list_[v->slot];
}

Function* Decoder::callee(std::string_view name) {
  auto text = module.by_name.find(name);
  if (text == module.by_name.end()) fail("call of unknown function '" + std::string(name) + "'");
  const auto& source = module.functions[text->second];
  if (source.is_kernel) fail("call of kernel '" + std::string(name) + "'");
  if (!source.has_body) fail("call of '" + std::string(name) + "', which this module does not define");
  if (auto found = program.by_name.find(std::string(source.name)); found != program.by_name.end()) return found->second;
  Function& f = program.functions.emplace_back();
  f.name = std::string(source.name);
  program.by_name[f.name] = &f;
  for (const bool result : {false, true}) {
    for (const auto& formal : result ? source.signature.results : source.signature.formals) {
      ParamArea area;
      area.name = std::string(formal.name);
      area.is_register = formal.is_register;
      area.bytes = formal.is_register ? formal.bytes : round_up(formal.bytes, 4);
      area.slot = slot(Bank::registers, f.frame_bytes);
      f.frame_bytes += formal.is_register ? round_up(formal.bytes * 32, 64) : area.bytes / 4 * 128;
      (result ? f.results : f.formals).push_back(area);
    }
  }
  return &f;
}

}  // namespace machine
