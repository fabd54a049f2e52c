// f16 and bf16 arithmetic, single and in pairs: add sub mul fma abs neg min max, ex2 and tanh.
#include "exec/lanes.hpp"
#include "exec/real.hpp"
#include "isa/families.hpp"
#include "isa/special.hpp"

namespace machine {
namespace {

using u16 = std::uint16_t;
using u32 = std::uint32_t;

template <class H>
u16 flushed16(u16 v) {
  return (v & 0x7fff) < H::kSmallestNormal ? v & 0x8000 : v;
}
template <class H>
bool is_nan16(u16 v) {
  return (v & 0x7fff) > (std::is_same_v<H, Half> ? 0x7c00 : 0x7f80);
}

// Operations with rounding give the value before it, as a float that rounds to the half as the exact value does.
struct AddOp {
  template <class H>
  static float apply(u16 a, u16 b) {
    return H::widen(a) + H::widen(b);
  }
};
struct SubOp {
  template <class H>
  static float apply(u16 a, u16 b) {
    return H::widen(a) - H::widen(b);
  }
};
struct MulOp {
  template <class H>
  static float apply(u16 a, u16 b) {
    return H::widen(a) * H::widen(b);
  }
};
struct FmaOp {
  template <class H>
  static float apply(u16 a, u16 b, u16 c) {
    return fma_to_odd(H::widen(a), H::widen(b), H::widen(c));
  }
};
// fma.oob: a factor that stands for an element out of bounds, a NaN of one pattern in both formats, makes the result
// zero.
inline constexpr u16 kOutOfBounds = 0x7ff7;
struct OobOp {
  template <class H>
  static float apply(u16 a, u16 b, u16 c) {
    return (a & 0x7fff) == kOutOfBounds || (b & 0x7fff) == kOutOfBounds ? 0.0f : FmaOp::apply<H>(a, b, c);
  }
};
// The special unit cuts most results instead of rounding them.
template <class H>
float cut(float v) {
  if (std::is_same_v<H, Bfloat>) return float_of(bits_of(v) & 0xffff0000u);
  return std::fabs(v) < 0x1p-14f ? std::trunc(v * 0x1p24f) * 0x1p-24f : float_of(bits_of(v) & 0xffffe000u);
}
struct Ex2Op {
  template <class H>
  static float apply(u16 a) {
    return cut<H>(special::ex2(H::widen(a)));
  }
};
struct TanhOp {
  template <class H>
  static float apply(u16 a) {
    const float v = special::tanh(H::widen(a));
    return std::is_same_v<H, Bfloat> ? cut<H>(v) : v;
  }
};
// Operations on bits.
struct AbsOp {
  template <class H>
  static u16 apply(u16 a) {
    return is_nan16<H>(a) ? kNan16 : a & 0x7fff;
  }
};
struct NegOp {
  template <class H>
  static u16 apply(u16 a) {
    return is_nan16<H>(a) ? kNan16 : a ^ 0x8000;
  }
};

template <bool Max, bool Nan, bool Xorsign>
struct MinMaxOp {
  template <class H>
  static u16 apply(u16 a, u16 b) {
    const u16 sign = Xorsign ? (a ^ b) & 0x8000 : 0;
    if (Xorsign) a &= 0x7fff, b &= 0x7fff;
    const bool na = is_nan16<H>(a), nb = is_nan16<H>(b);
    // Sign-magnitude to an order that has -0 below +0.
    const int ka = a & 0x8000 ? -1 - (a & 0x7fff) : a, kb = b & 0x8000 ? -1 - (b & 0x7fff) : b;
    const u16 chosen = (Max ? ka < kb : kb < ka) ? b : a;
    const u16 some = na ? b : nb ? a : chosen;
    if (Nan ? (na || nb) : (na && nb)) return kNan16;
    return Xorsign ? static_cast<u16>(some | sign) : some;
  }
};

// Flush looks at the result before it is rounded: what would round up to the smallest normal is zero.
template <class H, bool Flush>
u16 finished(float v) {
  constexpr float smallest = std::is_same_v<H, Half> ? 0x1p-14f : 0x1p-126f;
  return H::narrow(Flush && std::fabs(v) < smallest ? std::copysign(0.0f, v) : v);
}
template <class H, bool Flush>
u16 finished(u16 v) {
  return Flush ? flushed16<H>(v) : v;
}

// Flush of operands and result, and the clamps that may follow.
enum class Clamp { none, sat, relu };
template <class H, class Op, bool Flush, Clamp C>
struct Shell {
  template <class... A>
  static u16 apply(A... a) {
    u16 r = finished<H, Flush>(Op::template apply<H>(Flush ? flushed16<H>(a) : a...));
    if (C == Clamp::sat) {
      constexpr u16 one = std::is_same_v<H, Half> ? 0x3c00 : 0x3f80;
      r = is_nan16<H>(r) || (r & 0x8000) ? 0 : r > one ? one : r;
    }
    if (C == Clamp::relu) r = is_nan16<H>(r) ? kNan16 : (r & 0x8000) ? 0 : r;
    return r;
  }
};
template <class S>
struct Both {
  template <class... A>
  static u32 apply(A... a) {
    return S::apply(static_cast<u16>(a)...) | static_cast<u32>(S::apply(static_cast<u16>(a >> 16)...)) << 16;
  }
};

template <class S, int Count>
Handler handler(bool pair) {
  if constexpr (Count == 1) return pair ? unary<u32, u32, Both<S>> : unary<u16, u16, S>;
  else if constexpr (Count == 2) return pair ? binary<u32, u32, u32, Both<S>> : binary<u16, u16, u16, S>;
  else return pair ? ternary<u32, u32, u32, u32, Both<S>> : ternary<u16, u16, u16, u16, S>;
}
template <class H, class Op, int Count>
Handler shelled(bool pair, bool flush, Clamp clamp) {
  if (clamp == Clamp::sat)
    return flush ? handler<Shell<H, Op, true, Clamp::sat>, Count>(pair)
                 : handler<Shell<H, Op, false, Clamp::sat>, Count>(pair);
  if (clamp == Clamp::relu)
    return flush ? handler<Shell<H, Op, true, Clamp::relu>, Count>(pair)
                 : handler<Shell<H, Op, false, Clamp::relu>, Count>(pair);
  return flush ? handler<Shell<H, Op, true, Clamp::none>, Count>(pair)
               : handler<Shell<H, Op, false, Clamp::none>, Count>(pair);
}

void emit(Decoder& d, Handler h, Type t, std::size_t sources) {
  d.end(sources + 1);
  const Type bits = bytes_of(t) == 4 ? Type::b32 : Type::b16;
  Slot s[3] = {};
  for (std::size_t k = 0; k < sources; ++k) s[k] = d.source(k + 1, bits);
  const Slot r = d.destination(0, bits);
  d.need_mode({false, 'n'});
  d.klass(InstructionClass::half);
  Inst& i = d.emit(h);
  i.a = s[0], i.b = s[1], i.c = s[2], i.d = r;
}

bool is_pair(Type t) { return t == Type::f16x2 || t == Type::bf16x2; }
bool is_bf16(Type t) { return t == Type::bf16 || t == Type::bf16x2; }
Type half_type(Decoder& d) { return d.type({Type::f16, Type::f16x2, Type::bf16, Type::bf16x2}); }

template <class H>
Handler min_max(bool pair, bool flush, bool min, bool nan, bool xorsign) {
  const int k = (min ? 0 : 4) | (nan ? 2 : 0) | (xorsign ? 1 : 0);
  switch (k) {
    case 0: return shelled<H, MinMaxOp<false, false, false>, 2>(pair, flush, Clamp::none);
    case 1: return shelled<H, MinMaxOp<false, false, true>, 2>(pair, flush, Clamp::none);
    case 2: return shelled<H, MinMaxOp<false, true, false>, 2>(pair, flush, Clamp::none);
    case 3: return shelled<H, MinMaxOp<false, true, true>, 2>(pair, flush, Clamp::none);
    case 4: return shelled<H, MinMaxOp<true, false, false>, 2>(pair, flush, Clamp::none);
    case 5: return shelled<H, MinMaxOp<true, false, true>, 2>(pair, flush, Clamp::none);
    case 6: return shelled<H, MinMaxOp<true, true, false>, 2>(pair, flush, Clamp::none);
    default: return shelled<H, MinMaxOp<true, true, true>, 2>(pair, flush, Clamp::none);
  }
}

}  // namespace

void decode_half_arithmetic(Decoder& d, std::string_view what) {
  const bool rounded = d.accept("rn"), flush = d.flush(), oob = d.accept("oob");
  const bool sat = d.accept("sat"), relu = d.accept("relu");
  const Type t = half_type(d);
  const bool bf = is_bf16(t), pair = is_pair(t);
  if (bf && (flush || sat)) d.fail("bf16 takes neither .ftz nor .sat");
  if (sat && relu) d.fail(".sat and .relu exclude each other");
  if (what == "fma") {
    if (!rounded) d.fail("needs .rn");
    const Clamp c = sat ? Clamp::sat : relu ? Clamp::relu : Clamp::none;
    if (oob && (flush || sat)) d.fail(".oob takes neither .ftz nor .sat");
    if (oob)
      return emit(d, bf ? shelled<Bfloat, OobOp, 3>(pair, false, c) : shelled<Half, OobOp, 3>(pair, false, c), t, 3);
    return emit(d, bf ? shelled<Bfloat, FmaOp, 3>(pair, false, c) : shelled<Half, FmaOp, 3>(pair, flush, c), t, 3);
  }
  if (relu || oob) d.fail(".relu and .oob need fma");
  const Clamp c = sat ? Clamp::sat : Clamp::none;
  const Handler h =
      what == "add"   ? (bf ? shelled<Bfloat, AddOp, 2>(pair, false, c) : shelled<Half, AddOp, 2>(pair, flush, c))
      : what == "sub" ? (bf ? shelled<Bfloat, SubOp, 2>(pair, false, c) : shelled<Half, SubOp, 2>(pair, flush, c))
                      : (bf ? shelled<Bfloat, MulOp, 2>(pair, false, c) : shelled<Half, MulOp, 2>(pair, flush, c));
  emit(d, h, t, 2);
}

void decode_half_abs_neg(Decoder& d, bool abs) {
  const bool flush = d.flush();
  const Type t = half_type(d);
  const bool bf = is_bf16(t), pair = is_pair(t);
  emit(d,
       abs ? (bf ? shelled<Bfloat, AbsOp, 1>(pair, flush, Clamp::none)
                 : shelled<Half, AbsOp, 1>(pair, flush, Clamp::none))
           : (bf ? shelled<Bfloat, NegOp, 1>(pair, flush, Clamp::none)
                 : shelled<Half, NegOp, 1>(pair, flush, Clamp::none)),
       t, 1);
}

void decode_half_min_max(Decoder& d, bool min) {
  const bool flush = d.flush(), nan = d.accept("NaN"), xorsign = d.accept("xorsign"), abs = d.accept("abs");
  const Type t = half_type(d);
  if (xorsign != abs) d.fail(".xorsign and .abs go together");
  if (d.count() != 3) d.fail("three operands need sm_100 or later");
  if (is_bf16(t) && flush) d.fail("bf16 takes no .ftz");
  emit(d,
       is_bf16(t) ? min_max<Bfloat>(is_pair(t), false, min, nan, xorsign)
                  : min_max<Half>(is_pair(t), flush, min, nan, xorsign),
       t, 2);
}

void decode_half_special(Decoder& d, std::string_view what) {
  const bool approx = d.accept("approx");
  const bool flush = d.flush();
  const Type t = half_type(d);
  if (!approx) d.fail("needs .approx");
  const bool bf = is_bf16(t), pair = is_pair(t);
  if (what == "ex2" && bf != flush) d.fail("ex2 on bf16 needs .ftz, on f16 takes none");
  if (what == "tanh" && flush) d.fail("takes no .ftz");
  emit(d,
       what == "ex2" ? (bf ? shelled<Bfloat, Ex2Op, 1>(pair, true, Clamp::none)
                           : shelled<Half, Ex2Op, 1>(pair, false, Clamp::none))
                     : (bf ? shelled<Bfloat, TanhOp, 1>(pair, false, Clamp::none)
                           : shelled<Half, TanhOp, 1>(pair, false, Clamp::none)),
       t, 1);
  d.klass(InstructionClass::special);
}

}  // namespace machine
