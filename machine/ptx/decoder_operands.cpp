// Modifiers and operands of a statement: numbers to constants, names to slots, addresses to base and offset.
#include "ptx/decoder.hpp"

#include <cstring>

#include "ptx/special_names.hpp"

namespace machine {

std::string_view register_of(std::string_view operand) {
  std::size_t at = operand.size();
  while (at > 0 && operand[at - 1] >= '0' && operand[at - 1] <= '7') --at;
  const bool part =
      at > 2 && at < operand.size() && (operand[at - 1] == 'b' || operand[at - 1] == 'h') && operand[at - 2] == '.';
  return part ? operand.substr(0, at - 2) : operand;
}

// ---- modifiers ---------------------------------------------------------------------------------------------------

bool Decoder::accept(std::string_view modifier) {
  for (std::size_t k = 0; k < modifiers_.size(); ++k) {
    if ((accepted_ >> k & 1) == 0 && modifiers_[k] == modifier) {
      accepted_ |= std::uint64_t{1} << k;
      return true;
    }
  }
  return false;
}

int Decoder::accept_one(std::span<const std::string_view> choices) {
  int index = 0;
  for (const auto choice : choices) {
    if (accept(choice)) return index;
    ++index;
  }
  return -1;
}

std::string_view Decoder::next() const {
  for (std::size_t k = 0; k < modifiers_.size(); ++k)
    if ((accepted_ >> k & 1) == 0) return modifiers_[k];
  return {};
}

Type Decoder::type() {
  const auto word = next();
  const Type t = type_of(word);
  if (t == Type::none) fail(word.empty() ? "a type is missing" : "unknown modifier '." + std::string(word) + "'");
  accept(word);
  return t;
}
Type Decoder::type(std::initializer_list<Type> allowed) {
  const Type t = type();
  for (const Type a : allowed)
    if (a == t) return t;
  refuse_type(t);
}

void Decoder::end(std::size_t least, std::size_t most) {
  if (const auto left = next(); !left.empty()) fail("unknown modifier '." + std::string(left) + "'");
  if (operands_.size() < least || operands_.size() > most) fail(std::to_string(operands_.size()) + " operands");
}

// ---- operands ----------------------------------------------------------------------------------------------------

Slot Decoder::number_slot(const Operand& o, Type type) {
  const auto& n = o.number_value;
  const unsigned bytes = bytes_of(type);
  std::uint64_t bits = n.bits;
  if (n.kind == Number::float64 && (type == Type::f32 || type == Type::b32)) {
    double wide;
    std::memcpy(&wide, &n.bits, 8);
    const float narrow = static_cast<float>(wide);
    bits = 0;
    std::memcpy(&bits, &narrow, 4);
  } else if (n.kind == Number::float32 && bytes == 8) {
    float narrow;
    std::memcpy(&narrow, &n.bits, 4);
    const double wide = narrow;
    std::memcpy(&bits, &wide, 8);
  } else if (n.kind == Number::integer && (type == Type::f32 || type == Type::f64)) {
    fail("integer constant where '." + std::string(name_of(type)) + "' is expected");
  } else if (n.kind != Number::integer && bytes < 4) {
    fail("floating constant where '." + std::string(name_of(type)) + "' is expected");
  } else if (n.kind != Number::integer && is_integer(type)) {
    fail("floating constant where '." + std::string(name_of(type)) + "' is expected");
  }
  return constant(&bits, std::max(bytes, 2u));
}

Slot Decoder::source(const Operand& o, Type type) {
  if (type == Type::pred) return predicate_source(o);
  return noted(Use::read, source_slot(o, type), bytes_of(type));
}

Slot Decoder::source_slot(const Operand& o, Type type) {
  const unsigned bytes = bytes_of(type);
  if (o.kind == Operand::number) return number_slot(o, type);
  if (o.kind != Operand::name || o.minus || o.negated) fail("bad operand");
  if (Variable* v = find(o.text)) return variable_slot(*v, o, type);
  if (const auto slot = special_slot(o, type)) return *slot;
  if (o.text == "WARP_SZ") {
    const std::uint64_t value = kWarp;
    return constant(&value, bytes);
  }
  if (const auto found = module.by_name.find(o.text); found != module.by_name.end()) {
    const FunctionText& text = module.functions[found->second];
    if (text.is_kernel || !text.has_body)
      fail("the address of " + std::string(text.is_kernel ? "kernel" : "function") + " '" + std::string(o.text) +
           "' is not supported");
    if (bytes != 8 || o.offset != 0) fail("address of '" + std::string(o.text) + "' does not fit");
    const std::uint64_t value = module.code.of(found->second);
    return constant(&value, bytes);
  }
  fail("unknown name '" + std::string(o.text) + "'");
}

// A register, or the address of a variable.
Slot Decoder::variable_slot(Variable& v, const Operand& o, Type type) {
  const unsigned bytes = bytes_of(type);
  switch (v.kind) {
    case Variable::reg:
      if (v.bytes != bytes)
        fail("register '" + std::string(o.text) + "' has the wrong width for '." + std::string(name_of(type)) + "'");
      return reg_slot(v, Use::read);
    case Variable::param_area: fail("the address of parameter '" + std::string(o.text) + "' is not supported");
    case Variable::local:
      if (!function.is_kernel) fail("address of '" + std::string(o.text) + "' is not a constant here");
      break;
    case Variable::shared:
    case Variable::dynamic_shared:
    case Variable::global:
    case Variable::kernel_param:
      if (bytes < 4 || (v.kind == Variable::global && bytes != 8))
        fail("address of '" + std::string(o.text) + "' does not fit");
      break;
  }
  const std::uint64_t value = v.address + static_cast<std::uint64_t>(o.offset);
  return constant(&value, bytes);
}

std::optional<Slot> Decoder::special_slot(const Operand& o, Type type) {
  const auto named = special_named(o.text);
  const auto fixed = named ? std::nullopt : fixed_register(o.text);
  if (!named && !fixed) return std::nullopt;
  const unsigned bytes = bytes_of(type);
  if (bytes != (fixed ? fixed->bytes : 4u))
    fail("special register '" + std::string(o.text) + "' read with '." + std::string(name_of(type)) + "'");
  if (fixed) return constant(&fixed->value, bytes);
  if (*named == Special::envreg1 || *named == Special::envreg2) program.grid_sync = true;
  return special(*named);
}

Slot Decoder::destination(const Operand& o, Type type) {
  if (type == Type::pred) return predicate_destination(o);
  if (o.kind == Operand::sink) return noted(Use::write, passing(bytes_of(type)), bytes_of(type));
  if (o.kind != Operand::name || o.minus || o.negated) fail("bad destination");
  Variable* v = find(o.text);
  if (v == nullptr || v->kind != Variable::reg) fail("'" + std::string(o.text) + "' is no register");
  if (v->bytes != bytes_of(type))
    fail("register '" + std::string(o.text) + "' has the wrong width for '." + std::string(name_of(type)) + "'");
  return noted(Use::write, reg_slot(*v, Use::write), v->bytes);
}

bool Decoder::alias(std::size_t source_index, Type type) {
  if (guard_ != true_ || operands_[0].kind != Operand::name) return false;
  Variable* to = find(operands_[0].text);
  if (to == nullptr || to->kind != Variable::reg || !to->single || to->allocated || to->bytes != bytes_of(type) ||
      to->bytes < 2)
    return false;
  const Operand& o = operands_[source_index];
  if (o.kind == Operand::name) {
    Variable* from = find(o.text);
    if (from != nullptr && from->kind == Variable::reg && !from->single) return false;
    if (from != nullptr && from->kind != Variable::reg && from->kind != Variable::shared &&
        from->kind != Variable::dynamic_shared && from->kind != Variable::global)
      return false;
  } else if (o.kind != Operand::number) {
    return false;
  }
  to->slot = source(o, type);
  if (const Variable* from = o.kind == Operand::name ? find(o.text) : nullptr;
      from != nullptr && from->kind == Variable::reg)
    to->number = from->number;
  to->allocated = true;
  // It still is an instruction of the program, and is counted as one.
  if (begin_block_) begin_block();
  return true;
}

Slot Decoder::predicate_source(const Operand& o) { return noted(Use::read, predicate_slot(o, Use::read), 0); }

Slot Decoder::predicate_slot(const Operand& o, Use use) {
  if (o.text == "%is_explicit_cluster" && use == Use::read) return constant_mask(o.negated ? kFullMask : 0);
  if (o.kind == Operand::number && o.number_value.kind == Number::integer)
    return constant_mask((o.number_value.bits != 0) != o.negated ? kFullMask : 0);
  if (o.kind != Operand::name || o.minus) fail("bad predicate operand");
  Variable* v = find(o.text);
  if (v == nullptr || v->kind != Variable::reg || v->bytes != 0) fail("'" + std::string(o.text) + "' is no predicate");
  if (o.negated) fail("a negated predicate is not supported");
  return reg_slot(*v, use);
}

Slot Decoder::predicate_destination(const Operand& o) {
  return noted(Use::write, o.kind == Operand::sink ? passing(0) : predicate_slot(o, Use::write), 0);
}

bool Decoder::is_register(const Operand& o) {
  if (o.kind != Operand::name) return false;
  Variable* v = find(o.text);
  return v != nullptr && v->kind == Variable::reg;
}

Slot Decoder::wide_source(const Operand& o, Type type, unsigned& width) {
  if (o.kind == Operand::name) {
    if (Variable* v = find(o.text); v != nullptr && v->kind == Variable::reg) {
      if (v->bytes == 0 || v->bytes < bytes_of(type)) fail("register '" + std::string(o.text) + "' is too narrow");
      width = std::max<unsigned>(v->bytes, 2);
      return noted(Use::read, reg_slot(*v, Use::read), v->bytes);
    }
  }
  width = std::max(bytes_of(type), 2u);
  if (o.kind == Operand::number) return noted(Use::read, number_slot(o, type), bytes_of(type));
  return source(o, type);
}

Slot Decoder::wide_destination(const Operand& o, Type type, unsigned& width) {
  if (o.kind == Operand::sink) {
    width = std::max(bytes_of(type), 2u);
    return noted(Use::write, passing(width), bytes_of(type));
  }
  if (o.kind != Operand::name) fail("bad destination");
  Variable* v = find(o.text);
  if (v == nullptr || v->kind != Variable::reg || v->bytes == 0) fail("'" + std::string(o.text) + "' is no register");
  if (v->bytes < bytes_of(type)) fail("register '" + std::string(o.text) + "' is too narrow");
  width = std::max<unsigned>(v->bytes, 2);
  return noted(Use::write, reg_slot(*v, Use::write), v->bytes);
}

bool Decoder::is_immediate(std::size_t index) {
  const auto& o = operands_[index];
  if (o.kind == Operand::number) return true;
  const Variable* v = o.kind == Operand::name ? find(o.text) : nullptr;
  return v != nullptr && v->kind == Variable::reg && v->allocated &&
         (v->slot & 3) == static_cast<Slot>(Bank::constants);
}

std::uint32_t Decoder::immediate(std::size_t index) {
  const auto& o = operands_[index];
  if (o.kind == Operand::name && is_immediate(index)) {
    std::uint32_t value = 0;
    std::memcpy(&value, function.constants.data() + (find(o.text)->slot & ~Slot{3}), 4);
    return value;
  }
  if (o.kind != Operand::number || o.number_value.kind != Number::integer)
    fail("operand " + std::to_string(index + 1) + " must be a constant");
  return static_cast<std::uint32_t>(o.number_value.bits);
}

Decoder::Address Decoder::address(std::size_t index) {
  const auto& o = operands_[index];
  if (o.kind != Operand::address) fail("operand " + std::to_string(index + 1) + " must be an address");
  Address a;
  a.offset = o.offset;
  const std::uint64_t nothing = 0;
  if (o.text.empty()) {
    a.base = constant(&nothing, 8);
    return a;
  }
  Variable* v = find(o.text);
  if (v == nullptr) fail("unknown name '" + std::string(o.text) + "'");
  if (v->kind == Variable::reg) {
    if (v->bytes != 4 && v->bytes != 8) fail("'" + std::string(o.text) + "' cannot hold an address");
    a.width = v->bytes;
    a.base = noted(Use::read, reg_slot(*v, Use::read), v->bytes);
    return a;
  }
  a.variable = v;
  a.base = constant(&nothing, 8);
  if (v->kind != Variable::param_area) a.offset += static_cast<std::int64_t>(v->address);
  return a;
}

}  // namespace machine
