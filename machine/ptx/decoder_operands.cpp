// Modifiers and operands: names to slots, numbers to constants, addresses to base and offset.
#include "ptx/decoder.hpp"

#include <cstring>

namespace machine {
namespace {

std::uint32_t round_up(std::uint32_t value, std::uint32_t to) { return (value + to - 1) / to * to; }

struct SpecialName {
  std::string_view name;
  Special special;
};
constexpr SpecialName kSpecials[] = {
    {"%tid.x", Special::tid_x},
    {"%tid.y", Special::tid_y},
    {"%tid.z", Special::tid_z},
    {"%ntid.x", Special::ntid_x},
    {"%ntid.y", Special::ntid_y},
    {"%ntid.z", Special::ntid_z},
    {"%ctaid.x", Special::ctaid_x},
    {"%ctaid.y", Special::ctaid_y},
    {"%ctaid.z", Special::ctaid_z},
    {"%nctaid.x", Special::nctaid_x},
    {"%nctaid.y", Special::nctaid_y},
    {"%nctaid.z", Special::nctaid_z},
    {"%laneid", Special::laneid},
    {"%warpid", Special::warpid},
    {"%nwarpid", Special::nwarpid},
    {"%smid", Special::smid},
    {"%nsmid", Special::nsmid},
    {"%gridid", Special::gridid},
    {"%lanemask_eq", Special::lanemask_eq},
    {"%lanemask_le", Special::lanemask_le},
    {"%lanemask_lt", Special::lanemask_lt},
    {"%lanemask_ge", Special::lanemask_ge},
    {"%lanemask_gt", Special::lanemask_gt},
    {"%dynamic_smem_size", Special::dynamic_smem_size},
    {"%total_smem_size", Special::total_smem_size},
    {"%aggr_smem_size", Special::aggr_smem_size},
    {"%envreg1", Special::envreg1},
    {"%envreg2", Special::envreg2},
    // A launch without clusters is one of clusters of one block.
    {"%clusterid.x", Special::ctaid_x},
    {"%clusterid.y", Special::ctaid_y},
    {"%clusterid.z", Special::ctaid_z},
    {"%nclusterid.x", Special::nctaid_x},
    {"%nclusterid.y", Special::nctaid_y},
    {"%nclusterid.z", Special::nctaid_z},
    {"%cluster_ctaid.x", Special::zero},
    {"%cluster_ctaid.y", Special::zero},
    {"%cluster_ctaid.z", Special::zero},
    {"%cluster_nctaid.x", Special::one},
    {"%cluster_nctaid.y", Special::one},
    {"%cluster_nctaid.z", Special::one},
    {"%cluster_ctarank", Special::zero},
    {"%cluster_nctarank", Special::one},
};

struct FixedName {
  std::string_view name;
  std::uint64_t value;
  unsigned bytes;
};
// The system's own shared memory, as the H200 tells it.
constexpr FixedName kFixed[] = {
    {"%reserved_smem_offset_begin", 0, 4},  {"%reserved_smem_offset_end", 0x120, 4},
    {"%reserved_smem_offset_cap", 1024, 4}, {"%reserved_smem_offset_0", 0, 4},
    {"%reserved_smem_offset_1", 0, 4},      {"%current_graph_exec", 0, 8},
};

}  // namespace

std::string_view register_of(std::string_view operand) {
  std::size_t at = operand.size();
  while (at > 0 && operand[at - 1] >= '0' && operand[at - 1] <= '7') --at;
  const bool part =
      at > 2 && at < operand.size() && (operand[at - 1] == 'b' || operand[at - 1] == 'h') && operand[at - 2] == '.';
  return part ? operand.substr(0, at - 2) : operand;
}

// ---- modifiers ---------------------------------------------------------------------------------------------------

bool Decoder::take(std::string_view modifier) {
  for (std::size_t k = 0; k < modifiers_.size(); ++k) {
    if ((taken_ >> k & 1) == 0 && modifiers_[k] == modifier) {
      taken_ |= std::uint64_t{1} << k;
      return true;
    }
  }
  return false;
}

int Decoder::take_one(std::span<const std::string_view> choices) {
  int index = 0;
  for (const auto choice : choices) {
    if (take(choice)) return index;
    ++index;
  }
  return -1;
}

std::string_view Decoder::next() const {
  for (std::size_t k = 0; k < modifiers_.size(); ++k)
    if ((taken_ >> k & 1) == 0) return modifiers_[k];
  return {};
}

Type Decoder::type() {
  const auto word = next();
  const Type t = type_of(word);
  if (t == Type::none) fail(word.empty() ? "a type is missing" : "unknown modifier '." + std::string(word) + "'");
  take(word);
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

Variable* Decoder::find(std::string_view name) {
  for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
    if (auto found = scope->names.find(name); found != scope->names.end()) return &found->second;
    if (scope->ranges.empty()) continue;
    std::size_t digits = name.size();
    while (digits > 0 && name[digits - 1] >= '0' && name[digits - 1] <= '9') --digits;
    if (digits == name.size() || name.size() - digits > 9) continue;
    // A prefix may itself end in digits, as in %r1_<3>; the longest run of digits is what nvcc means, and others are
    // tried.
    for (const auto& range : scope->ranges) {
      if (name.size() <= range.prefix.size() || name.substr(0, range.prefix.size()) != range.prefix) continue;
      std::uint64_t number = 0;
      bool good = true;
      for (const char c : name.substr(range.prefix.size())) {
        if (c < '0' || c > '9') good = false;
        number = number * 10 + static_cast<unsigned>(c - '0');
      }
      if (!good || number >= range.count) continue;
      Variable v;
      v.kind = Variable::reg;
      v.type = range.type;
      v.bytes = static_cast<std::uint8_t>(bytes_of(range.type));
      auto defined = definitions_.find(name);
      v.single = defined != definitions_.end() && defined->second == 1;
      if (v.bytes == 16) declare_halves(*scope, name);
      return &scope->names.emplace(name, v).first->second;
    }
  }
  auto& globals = scopes_.front().names;
  Variable v;
  if (function.is_kernel) {
    for (const auto& p : program.params)
      if (p.name == name) {
        v.kind = Variable::kernel_param;
        v.address = p.offset;
        v.size = p.size;
        return &globals.emplace(name, v).first->second;
      }
  }
  if (auto found = module.global_by_name.find(name); found != module.global_by_name.end()) {
    const auto& g = module.globals[found->second];
    v.kind = Variable::global;
    v.address = g.object->base;
    v.size = g.object->size;
    return &globals.emplace(name, v).first->second;
  }
  for (const auto& s : program.shared->variables)
    if (s.name == name) {
      v.kind = Variable::shared;
      v.address = s.base;
      v.size = s.size;
      return &globals.emplace(name, v).first->second;
    }
  for (const auto& s : module.shared)
    if (s.name == name && s.dynamic) {
      v.kind = Variable::dynamic_shared;
      v.address = program.shared->dynamic_base;
      return &globals.emplace(name, v).first->second;
    }
  for (std::size_t k = 0; k < function.formals.size() + function.results.size(); ++k) {
    const auto& area =
        k < function.formals.size() ? function.formals[k] : function.results[k - function.formals.size()];
    if (area.name != name) continue;
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
    return &globals.emplace(name, v).first->second;
  }
  return nullptr;
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

Slot Decoder::scratch(unsigned bytes) {
  if (bytes == 0) {
    if (function.predicate_room % 64 == 0) function.predicate_room = function.frame_bytes, function.frame_bytes += 64;
    const auto s = slot(Bank::registers, function.predicate_room);
    function.predicate_room += 4;
    return s;
  }
  const auto s = slot(Bank::registers, function.frame_bytes);
  function.frame_bytes += round_up(bytes * 32, 64);
  if (function.frame_bytes > (1u << 28)) fail("too many registers");
  return s;
}

Slot Decoder::passing(unsigned bytes) {
  const Slot s = scratch(bytes);
  if (following_) function.places.push_back({s & ~Slot{3}, pc_, pc_});
  return s;
}

Slot Decoder::local_base() {
  const Slot s = scratch(8);
  emit([](const Inst& i, Warp& w, Mask) -> const Inst* {
    auto* d = w.at<std::uint64_t>(i.d);
    for (unsigned l = 0; l < kWarp; ++l) d[l] = w.frame->base;
    return &i + 1;
  }).d = s;
  return s;
}

Slot Decoder::register_place(unsigned bytes) {
  if (bytes == 0 || layout_ == nullptr) return scratch(bytes);
  return slot(Bank::registers, register_base_ + layout_->offsets[numbered_.size()]);
}

Slot Decoder::reg_slot(Variable& v, Use use) {
  if (!v.allocated) {
    // an 8-bit register lies in a 16-bit slot
    const unsigned bytes = v.bytes == 0 ? 0 : std::max<unsigned>(v.bytes, 2);
    v.slot = register_place(bytes);
    v.number = static_cast<std::uint32_t>(numbered_.size());
    numbered_.emplace_back(v.slot, static_cast<std::uint8_t>(bytes));
    v.allocated = true;
    if (layout_ == nullptr) lifetimes_.add(bytes * kWarp);
  }
  if (layout_ == nullptr && v.number != ~std::uint32_t{0}) {
    if (use == Use::read) lifetimes_.read(v.number, pc_);
    else lifetimes_.write(v.number, pc_, guard_ == true_);
  }
  return v.slot;
}

Slot Decoder::noted(Use use, Slot s, unsigned bytes) {
  if (following_) (use == Use::read ? reads_ : writes_).push_back({s, static_cast<std::uint8_t>(bytes)});
  return s;
}

Slot Decoder::constant(const void* value, unsigned bytes) {
  std::string key(static_cast<const char*>(value), bytes);
  auto [found, fresh] = constants_.emplace(std::move(key), 0);
  if (fresh) {
    const auto at = static_cast<std::uint32_t>(function.constants.size());
    function.constants.resize(at + round_up(bytes * 32, 64));
    for (unsigned l = 0; l < 32; ++l) std::memcpy(function.constants.data() + at + l * bytes, value, bytes);
    found->second = slot(Bank::constants, at);
  }
  return found->second;
}

Slot Decoder::constant_mask(Mask mask) {
  std::string key = "mask";
  key.append(reinterpret_cast<const char*>(&mask), 4);
  auto [found, fresh] = constants_.emplace(std::move(key), 0);
  if (fresh) {
    const auto at = static_cast<std::uint32_t>(function.constants.size());
    function.constants.resize(at + 64);
    std::memcpy(function.constants.data() + at, &mask, 4);
    found->second = slot(Bank::constants, at);
  }
  return found->second;
}

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
  if (Variable* v = find(o.text)) {
    switch (v->kind) {
      case Variable::reg:
        if (v->bytes != bytes)
          fail("register '" + std::string(o.text) + "' has the wrong width for '." + std::string(name_of(type)) + "'");
        return reg_slot(*v, Use::read);
      case Variable::shared:
      case Variable::dynamic_shared:
      case Variable::global:
      case Variable::kernel_param: {
        if (bytes < 4 || (v->kind == Variable::global && bytes != 8))
          fail("address of '" + std::string(o.text) + "' does not fit");
        const std::uint64_t value = v->address + static_cast<std::uint64_t>(o.offset);
        return constant(&value, bytes);
      }
      case Variable::local:
        if (!function.is_kernel) fail("address of '" + std::string(o.text) + "' is not a constant here");
        {
          const std::uint64_t value = v->address + static_cast<std::uint64_t>(o.offset);
          return constant(&value, bytes);
        }
      case Variable::param_area: fail("the address of parameter '" + std::string(o.text) + "' is not supported");
    }
  }
  for (const auto& s : kSpecials) {
    if (s.name != o.text) continue;
    if (bytes != 4)
      fail("special register '" + std::string(o.text) + "' read with '." + std::string(name_of(type)) + "'");
    if (s.special == Special::envreg1 || s.special == Special::envreg2) program.grid_sync = true;
    return special(s.special);
  }
  for (const auto& s : kFixed) {
    if (s.name != o.text) continue;
    if (bytes != s.bytes)
      fail("special register '" + std::string(o.text) + "' read with '." + std::string(name_of(type)) + "'");
    return constant(&s.value, bytes);
  }
  // Performance monitors count nothing, environment registers hold what the driver put there: nothing.
  for (const std::string_view kind : {"%pm", "%envreg"})
    if (o.text.starts_with(kind)) {
      const std::uint64_t nothing = 0;
      if (bytes != (o.text.ends_with("_64") ? 8u : 4u))
        fail("special register '" + std::string(o.text) + "' read with '." + std::string(name_of(type)) + "'");
      return constant(&nothing, bytes);
    }
  if (o.text == "WARP_SZ") {
    const std::uint64_t value = 32;
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

const Slot* Decoder::keep(std::vector<Slot> slots) {
  function.slot_lists.push_back(std::move(slots));
  return function.slot_lists.back().data();
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
