// Integer arithmetic: add sub mul mad mul24 mad24 div rem abs neg min max sad, with carry forms, and dp4a dp2a.
#include <algorithm>
#include <limits>
#include <type_traits>

#include "exec/lanes.hpp"
#include "isa/families.hpp"
#include "isa/lane_integer.hpp"

namespace machine {
namespace {

using namespace lane_integer;

// ---- carry -------------------------------------------------------------------------------------------------------

enum class CarryOp { add, sub, mad_lo, mad_hi };

template <class T, CarryOp Op, bool In, bool Out>
const Inst* with_carry(const Inst& i, Warp& w, Mask mask) {
  const T *a = w.at<const T>(i.a), *b = w.at<const T>(i.b), *c = w.at<const T>(i.c);
  T* d = w.at<T>(i.d);
  for_lanes(mask, [&](unsigned l) {
    const Mask bit = Mask{1} << l;
    const u128 in = In && (w.carry & bit) ? 1 : 0;
    u128 value;
    bool out;
    constexpr unsigned width = 8 * sizeof(T);
    if constexpr (Op == CarryOp::sub) {
      // As the hardware subtracts, by adding the complement: CC.CF is the carry of that sum, which addc may ask for.
      value = static_cast<u128>(a[l]) + static_cast<T>(~b[l]) + (In ? in : 1);
      out = (value >> width & 1) != 0;
    } else if constexpr (Op == CarryOp::add) {
      value = static_cast<u128>(a[l]) + b[l] + in;
      out = (value >> width & 1) != 0;
    } else {
      const u128 product = static_cast<u128>(a[l]) * b[l];
      value = static_cast<u128>(static_cast<T>(Op == CarryOp::mad_lo ? product : product >> width)) + c[l] + in;
      out = (value >> width & 1) != 0;
    }
    d[l] = static_cast<T>(value);
    if constexpr (Out) w.carry = out ? w.carry | bit : w.carry & ~bit;
  });
  return &i + 1;
}

// mad.hi on signed operands differs only in the product.
template <class T, bool In, bool Out>
const Inst* mad_hi_signed_carry(const Inst& i, Warp& w, Mask mask) {
  const T *a = w.at<const T>(i.a), *b = w.at<const T>(i.b);
  const bits<T>* c = w.at<const bits<T>>(i.c);
  bits<T>* d = w.at<bits<T>>(i.d);
  for_lanes(mask, [&](unsigned l) {
    const Mask bit = Mask{1} << l;
    const u128 value =
        static_cast<u128>(static_cast<bits<T>>(MulHi<T>::apply(a[l], b[l]))) + c[l] + (In && (w.carry & bit) ? 1 : 0);
    d[l] = static_cast<bits<T>>(value);
    if constexpr (Out) w.carry = value >> (8 * sizeof(T)) != 0 ? w.carry | bit : w.carry & ~bit;
  });
  return &i + 1;
}
template <class T>
Handler mad_hi_signed(bool in, bool out) {
  return in ? (out ? mad_hi_signed_carry<T, true, true> : mad_hi_signed_carry<T, true, false>)
            : mad_hi_signed_carry<T, false, true>;
}

template <CarryOp Op>
Handler carry_handler(Type t, bool in, bool out) {
  const bool wide = bytes_of(t) == 8;
  if (wide)
    return in ? (out ? with_carry<u64, Op, true, true> : with_carry<u64, Op, true, false>)
              : (out ? with_carry<u64, Op, false, true> : with_carry<u64, Op, false, false>);
  return in ? (out ? with_carry<u32, Op, true, true> : with_carry<u32, Op, true, false>)
            : (out ? with_carry<u32, Op, false, true> : with_carry<u32, Op, false, false>);
}

// ---- choosing by type --------------------------------------------------------------------------------------------

template <template <class> class F>
Handler binary_for(Decoder& d, Type t) {
  switch (t) {
    case Type::u16: return binary<u16, u16, u16, F<u16>>;
    case Type::s16: return binary<s16, s16, s16, F<s16>>;
    case Type::u32: return binary<u32, u32, u32, F<u32>>;
    case Type::s32: return binary<s32, s32, s32, F<s32>>;
    case Type::u64: return binary<u64, u64, u64, F<u64>>;
    case Type::s64: return binary<s64, s64, s64, F<s64>>;
    default: d.refuse_type(t);
  }
}
template <template <class> class F>
Handler ternary_for(Decoder& d, Type t) {
  switch (t) {
    case Type::u16: return ternary<u16, u16, u16, u16, F<u16>>;
    case Type::s16: return ternary<s16, s16, s16, s16, F<s16>>;
    case Type::u32: return ternary<u32, u32, u32, u32, F<u32>>;
    case Type::s32: return ternary<s32, s32, s32, s32, F<s32>>;
    case Type::u64: return ternary<u64, u64, u64, u64, F<u64>>;
    case Type::s64: return ternary<s64, s64, s64, s64, F<s64>>;
    default: d.refuse_type(t);
  }
}

void emit2(Decoder& d, Handler h, Type t) {
  d.end(3);
  const Slot a = d.source(1, t), b = d.source(2, t), r = d.destination(0, t);
  Inst& i = d.emit(h);
  i.a = a, i.b = b, i.d = r;
}
void emit3(Decoder& d, Handler h, Type tr, Type t, Type tc) {
  d.end(4);
  const Slot a = d.source(1, t), b = d.source(2, t), c = d.source(3, tc), r = d.destination(0, tr);
  Inst& i = d.emit(h);
  i.a = a, i.b = b, i.c = c, i.d = r;
}

void add_sub(Decoder& d, bool add, bool carry_in) {
  const bool cc = d.accept("cc"), sat = d.accept("sat");
  const Type t = d.type();
  if (cc || carry_in) {
    if (t != Type::u32 && t != Type::s32 && t != Type::u64 && t != Type::s64) d.refuse_type(t);
    if (sat) d.fail(".sat with a carry");
    return emit2(d, add ? carry_handler<CarryOp::add>(t, carry_in, cc) : carry_handler<CarryOp::sub>(t, carry_in, cc),
                 t);
  }
  if (sat) {
    if (t != Type::s32) d.refuse_type(t);
    return emit2(d, add ? binary<s32, s32, s32, AddSat> : binary<s32, s32, s32, SubSat>, t);
  }
  if (t == Type::u16x2 || t == Type::s16x2) {
    if (!add) d.refuse_type(t);
    return emit2(d, binary<u32, u32, u32, Pair<u16, Add<u16>>>, t);
  }
  emit2(d, add ? binary_for<Add>(d, t) : binary_for<Sub>(d, t), t);
}

}  // namespace

void decode_integer_add(Decoder& d) { add_sub(d, true, false); }
void decode_integer_sub(Decoder& d) { add_sub(d, false, false); }

void decode_integer_mul(Decoder& d) {
  const int part = d.accept_one({"lo", "hi", "wide"});
  const Type t = d.type({Type::u16, Type::u32, Type::u64, Type::s16, Type::s32, Type::s64});
  if (part < 0) d.fail("needs .lo, .hi or .wide");
  if (part == 0) return emit2(d, binary_for<MulLo>(d, t), t);
  if (part == 1) return emit2(d, binary_for<MulHi>(d, t), t);
  d.end(3);
  const Slot a = d.source(1, t), b = d.source(2, t);
  Handler h = nullptr;
  Type result = Type::none;
  switch (t) {
    case Type::u16: h = binary<u32, u16, u16, MulWide<u16>>, result = Type::u32; break;
    case Type::s16: h = binary<s32, s16, s16, MulWide<s16>>, result = Type::s32; break;
    case Type::u32: h = binary<u64, u32, u32, MulWide<u32>>, result = Type::u64; break;
    case Type::s32: h = binary<s64, s32, s32, MulWide<s32>>, result = Type::s64; break;
    default: d.refuse_type(t);
  }
  const Slot r = d.destination(0, result);
  Inst& i = d.emit(h);
  i.a = a, i.b = b, i.d = r;
}

namespace {

void mad(Decoder& d, bool carry_in) {
  const int part = d.accept_one({"lo", "hi", "wide"});
  const bool sat = d.accept("sat"), cc = d.accept("cc");
  const Type t = d.type({Type::u16, Type::u32, Type::u64, Type::s16, Type::s32, Type::s64});
  if (part < 0) d.fail("needs .lo, .hi or .wide");
  if (cc || carry_in) {
    if (bytes_of(t) < 4 || part == 2 || sat) d.refuse_type(t);
    if (part == 1 && is_signed(t))
      return emit3(d, t == Type::s32 ? mad_hi_signed<s32>(carry_in, cc) : mad_hi_signed<s64>(carry_in, cc), t, t, t);
    return emit3(
        d,
        part == 0 ? carry_handler<CarryOp::mad_lo>(t, carry_in, cc) : carry_handler<CarryOp::mad_hi>(t, carry_in, cc),
        t, t, t);
  }
  if (sat) {
    if (part != 1 || t != Type::s32) d.refuse_type(t);
    return emit3(d, ternary<s32, s32, s32, s32, MadHiSat>, t, t, t);
  }
  if (part == 0) return emit3(d, ternary_for<MadLo>(d, t), t, t, t);
  if (part == 1) return emit3(d, ternary_for<MadHi>(d, t), t, t, t);
  switch (t) {
    case Type::u16: return emit3(d, ternary<u32, u16, u16, u32, MadWide<u16>>, Type::u32, t, Type::u32);
    case Type::s16: return emit3(d, ternary<s32, s16, s16, s32, MadWide<s16>>, Type::s32, t, Type::s32);
    case Type::u32: return emit3(d, ternary<u64, u32, u32, u64, MadWide<u32>>, Type::u64, t, Type::u64);
    case Type::s32: return emit3(d, ternary<s64, s32, s32, s64, MadWide<s32>>, Type::s64, t, Type::s64);
    default: d.refuse_type(t);
  }
}

void mul24(Decoder& d) {
  const int part = d.accept_one({"lo", "hi"});
  const Type t = d.type({Type::u32, Type::s32});
  if (part < 0) d.fail("needs .lo or .hi");
  if (t == Type::u32)
    return emit2(d, part == 0 ? binary<u32, u32, u32, Mul24Lo<u32>> : binary<u32, u32, u32, Mul24Hi<u32>>, t);
  emit2(d, part == 0 ? binary<s32, s32, s32, Mul24Lo<s32>> : binary<s32, s32, s32, Mul24Hi<s32>>, t);
}

void mad24(Decoder& d) {
  const int part = d.accept_one({"lo", "hi"});
  const bool sat = d.accept("sat");
  const Type t = d.type({Type::u32, Type::s32});
  if (part < 0) d.fail("needs .lo or .hi");
  if (sat) {
    if (part != 1 || t != Type::s32) d.refuse_type(t);
    return emit3(d, ternary<s32, s32, s32, s32, Mad24HiSat>, t, t, t);
  }
  if (t == Type::u32)
    return emit3(d, part == 0 ? ternary<u32, u32, u32, u32, Mad24Lo<u32>> : ternary<u32, u32, u32, u32, Mad24Hi<u32>>,
                 t, t, t);
  emit3(d, part == 0 ? ternary<s32, s32, s32, s32, Mad24Lo<s32>> : ternary<s32, s32, s32, s32, Mad24Hi<s32>>, t, t, t);
}

void rem(Decoder& d) {
  const Type t = d.type();
  emit2(d, binary_for<Rem>(d, t), t);
}

void sad(Decoder& d) {
  const Type t = d.type();
  emit3(d, ternary_for<Sad>(d, t), t, t, t);
}

void dp4a(Decoder& d) {
  const Type a = d.type({Type::u32, Type::s32}), b = d.type({Type::u32, Type::s32});
  using s8 = std::int8_t;
  using u8 = std::uint8_t;
  const Handler h = a == Type::s32 ? (b == Type::s32 ? ternary<u32, u32, u32, u32, Dot<s8, s8, 4, false>>
                                                     : ternary<u32, u32, u32, u32, Dot<s8, u8, 4, false>>)
                                   : (b == Type::s32 ? ternary<u32, u32, u32, u32, Dot<u8, s8, 4, false>>
                                                     : ternary<u32, u32, u32, u32, Dot<u8, u8, 4, false>>);
  emit3(d, h, Type::b32, Type::b32, Type::b32);
}

template <bool High>
Handler dp2a_handler(Type a, Type b) {
  using s8 = std::int8_t;
  using u8 = std::uint8_t;
  return a == Type::s32 ? (b == Type::s32 ? ternary<u32, u32, u32, u32, Dot<s16, s8, 2, High>>
                                          : ternary<u32, u32, u32, u32, Dot<s16, u8, 2, High>>)
                        : (b == Type::s32 ? ternary<u32, u32, u32, u32, Dot<u16, s8, 2, High>>
                                          : ternary<u32, u32, u32, u32, Dot<u16, u8, 2, High>>);
}

void dp2a(Decoder& d) {
  const int part = d.accept_one({"lo", "hi"});
  if (part < 0) d.fail("needs .lo or .hi");
  const Type a = d.type({Type::u32, Type::s32}), b = d.type({Type::u32, Type::s32});
  emit3(d, part == 1 ? dp2a_handler<true>(a, b) : dp2a_handler<false>(a, b), Type::b32, Type::b32, Type::b32);
}

}  // namespace

void decode_integer_mad(Decoder& d) { mad(d, false); }

void decode_integer_div(Decoder& d) {
  const Type t = d.type();
  emit2(d, binary_for<Div>(d, t), t);
}

void decode_integer_abs_neg(Decoder& d, bool abs) {
  const Type t = d.type({Type::s16, Type::s32, Type::s64});
  d.end(2);
  const Slot a = d.source(1, t), r = d.destination(0, t);
  const Handler h = t == Type::s16   ? (abs ? unary<s16, s16, Abs<s16>> : unary<s16, s16, Neg<s16>>)
                    : t == Type::s32 ? (abs ? unary<s32, s32, Abs<s32>> : unary<s32, s32, Neg<s32>>)
                                     : (abs ? unary<s64, s64, Abs<s64>> : unary<s64, s64, Neg<s64>>);
  Inst& i = d.emit(h);
  i.a = a, i.d = r;
}

void decode_integer_min_max(Decoder& d, bool min) {
  const bool relu = d.accept("relu");
  const Type t = d.type();
  if (t == Type::u16x2)
    return emit2(d, min ? binary<u32, u32, u32, Pair<u16, Min<u16>>> : binary<u32, u32, u32, Pair<u16, Max<u16>>>, t);
  if (t == Type::s16x2)
    return emit2(
        d,
        relu ? (min ? binary<u32, u32, u32, Pair<s16, MinRelu<s16>>> : binary<u32, u32, u32, Pair<s16, MaxRelu<s16>>>)
             : (min ? binary<u32, u32, u32, Pair<s16, Min<s16>>> : binary<u32, u32, u32, Pair<s16, Max<s16>>>),
        t);
  if (relu) {
    if (t != Type::s32) d.refuse_type(t);
    return emit2(d, min ? binary<s32, s32, s32, MinRelu<s32>> : binary<s32, s32, s32, MaxRelu<s32>>, t);
  }
  emit2(d, min ? binary_for<Min>(d, t) : binary_for<Max>(d, t), t);
}

std::span<const Opcode> integer_opcodes() {
  static constexpr auto k = InstructionClass::integer;
  static const Opcode table[] = {
      {"addc", [](Decoder& d) { add_sub(d, true, true); }, k},
      {"subc", [](Decoder& d) { add_sub(d, false, true); }, k},
      {"madc", [](Decoder& d) { mad(d, true); }, k},
      {"mul24", mul24, k},
      {"mad24", mad24, k},
      {"rem", rem, k},
      {"sad", sad, k},
      {"dp4a", dp4a, k},
      {"dp2a", dp2a, k},
  };
  return table;
}

}  // namespace machine
