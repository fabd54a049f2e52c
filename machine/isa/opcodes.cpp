// All mnemonics, from the tables of the families; and those that several families share, distinguished by type.
#include <unordered_map>

#include "isa/families.hpp"

namespace machine {
namespace {

enum class Kind { integer, real, half };

// The type that decides is the last modifier: add.rn.ftz.f16x2.
Kind kind_of(const Decoder& d) {
  const auto spelling = d.opcode();
  const auto at = spelling.rfind('.');
  const auto last = at == std::string_view::npos ? std::string_view{} : spelling.substr(at + 1);
  if (last == "f32x2") d.fail("needs sm_100 or later");
  const Type t = type_of(last);
  if (t == Type::f32 || t == Type::f64) return Kind::real;
  if (t == Type::f16 || t == Type::f16x2 || t == Type::bf16 || t == Type::bf16x2) return Kind::half;
  return Kind::integer;
}

template <void (*Integer)(Decoder&)>
void arithmetic(Decoder& d, std::string_view what) {
  switch (kind_of(d)) {
    case Kind::integer: d.klass(InstructionClass::integer); return Integer(d);
    case Kind::real: return decode_float_arithmetic(d, what);
    case Kind::half: return decode_half_arithmetic(d, what);
  }
}
void add(Decoder& d) { arithmetic<decode_integer_add>(d, "add"); }
void sub(Decoder& d) { arithmetic<decode_integer_sub>(d, "sub"); }
void mul(Decoder& d) { arithmetic<decode_integer_mul>(d, "mul"); }
void mad(Decoder& d) { arithmetic<decode_integer_mad>(d, "fma"); }
void fma(Decoder& d) {
  if (kind_of(d) == Kind::integer) d.fail("needs a floating-point type");
  kind_of(d) == Kind::real ? decode_float_arithmetic(d, "fma") : decode_half_arithmetic(d, "fma");
}
void div(Decoder& d) {
  switch (kind_of(d)) {
    case Kind::integer: return decode_integer_div(d);
    case Kind::real: return decode_float_div(d);
    case Kind::half: d.fail("no such instruction");
  }
}
template <bool Abs>
void abs_neg(Decoder& d) {
  switch (kind_of(d)) {
    case Kind::integer: return decode_integer_abs_neg(d, Abs);
    case Kind::real: return decode_float_abs_neg(d, Abs);
    case Kind::half: return decode_half_abs_neg(d, Abs);
  }
}
template <bool Min>
void min_max(Decoder& d) {
  switch (kind_of(d)) {
    case Kind::integer: return decode_integer_min_max(d, Min);
    case Kind::real: return decode_float_min_max(d, Min);
    case Kind::half: return decode_half_min_max(d, Min);
  }
}

}  // namespace

std::span<const Opcode> shared_mnemonics() {
  static constexpr auto k = InstructionClass::integer;
  static const Opcode table[] = {
      {"add", add, k},
      {"sub", sub, k},
      {"mul", mul, k},
      {"mad", mad, k},
      {"fma", fma, InstructionClass::float32},
      {"div", div, k},
      {"abs", abs_neg<true>, k},
      {"neg", abs_neg<false>, k},
      {"min", min_max<true>, k},
      {"max", min_max<false>, k},
  };
  return table;
}

std::string_view refusal(std::string_view base) {
  static constexpr std::pair<std::string_view, std::string_view> kRefused[] = {
      {"tex", "textures are not supported"},
      {"tld4", "textures are not supported"},
      {"txq", "textures are not supported"},
      {"suld", "surfaces are not supported"},
      {"sust", "surfaces are not supported"},
      {"sured", "surfaces are not supported"},
      {"suq", "surfaces are not supported"},
      {"istypep", "textures are not supported"},
      {"multimem", "memory of several GPUs is not supported"},
      {"tcgen05", "needs sm_100 or later"},
      {"clusterlaunchcontrol", "needs sm_100 or later"},
  };
  for (const auto& [name, reason] : kRefused)
    if (name == base) return reason;
  return "unknown instruction";
}

const Opcode* find_opcode(std::string_view base) {
  static const auto* all = [] {
    auto* map = new std::unordered_map<std::string_view, Opcode>;
    for (const auto family :
         {shared_mnemonics(),    integer_opcodes(),    bits_opcodes(),     float_opcodes(),      special_opcodes(),
          convert_opcodes(),     compare_opcodes(),    move_opcodes(),     memory_opcodes(),     hint_opcodes(),
          atomic_opcodes(),      async_opcodes(),      mbarrier_opcodes(), tensor_map_opcodes(), matrix_opcodes(),
          matrix_move_opcodes(), collective_opcodes(), barrier_opcodes(),  control_opcodes(),    call_opcodes(),
          stack_opcodes(),       video_opcodes(),      wmma_opcodes()})
      for (const auto& opcode : family) map->emplace(opcode.base, opcode);
    return map;
  }();
  auto found = all->find(base);
  return found == all->end() ? nullptr : &found->second;
}

}  // namespace machine
