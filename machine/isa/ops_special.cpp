// Approximate functions in f32: ex2 lg2 sin cos tanh.
#include "isa/special.hpp"

#include "exec/lanes.hpp"
#include "isa/families.hpp"

namespace machine {
namespace {

template <float (*F)(float)>
struct Function1 {
  static float apply(float a) { return F(a); }
};
struct Ex2Flush {
  static float apply(float a) { return special::ex2(a); }
};
struct Lg2Flush {
  static float apply(float a) { return special::lg2(flushed(a)); }
};

void decode(Decoder& d, Handler plain, Handler flushing, bool may_flush) {
  const bool approx = d.accept("approx"), flush = d.flush();
  d.type({Type::f32});
  if (!approx) d.fail("needs .approx");
  if (flush && !may_flush) d.fail("takes no .ftz");
  d.end(2);
  const Slot a = d.source(1, Type::f32), r = d.destination(0, Type::f32);
  d.need_mode({flush, 'n'});
  Inst& i = d.emit(flush ? flushing : plain);
  i.a = a, i.d = r;
}

bool is_half(const Decoder& d) { return d.opcode().find("f16") != std::string_view::npos; }

}  // namespace

std::span<const Opcode> special_opcodes() {
  static constexpr auto k = InstructionClass::special;
  static const Opcode table[] = {
      {"ex2",
       [](Decoder& d) {
         is_half(d) ? decode_half_special(d, "ex2")
                    : decode(d, unary<float, float, Function1<special::ex2>>, unary<float, float, Ex2Flush>, true);
       },
       k},
      {"lg2",
       [](Decoder& d) { decode(d, unary<float, float, Function1<special::lg2>>, unary<float, float, Lg2Flush>, true); },
       k},
      {"sin",
       [](Decoder& d) {
         decode(d, unary<float, float, Function1<special::sin>>, unary<float, float, Function1<special::sin>>, true);
       },
       k},
      {"cos",
       [](Decoder& d) {
         decode(d, unary<float, float, Function1<special::cos>>, unary<float, float, Function1<special::cos>>, true);
       },
       k},
      {"tanh",
       [](Decoder& d) {
         is_half(d) ? decode_half_special(d, "tanh")
                    : decode(d, unary<float, float, Function1<special::tanh>>, nullptr, false);
       },
       k},
  };
  return table;
}

}  // namespace machine
