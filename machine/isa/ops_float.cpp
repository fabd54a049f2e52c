// f32 and f64 arithmetic: add sub mul fma div rcp sqrt rsqrt abs neg min max copysign testp.
#include "exec/lanes.hpp"
#include "exec/real.hpp"
#include "isa/families.hpp"

namespace machine {
namespace {

// Of two f64 NaN the second is kept. The host keeps the first, and its compiler may exchange them.
template <class T>
bool second_nan(T b) {
  return sizeof(T) == 8 && b != b;
}
template <class T>
struct Add {
  static T apply(T a, T b) { return second_nan(b) ? quieted(b) : canonical(a + b); }
};
template <class T>
struct Sub {
  static T apply(T a, T b) { return second_nan(b) ? quieted(b) : canonical(a - b); }
};
template <class T>
struct Mul {
  static T apply(T a, T b) { return second_nan(b) ? quieted(b) : canonical(a * b); }
};
template <class T>
struct Div {
  static T apply(T a, T b) { return canonical(a / b); }
};
inline float fused(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
inline double fused(double a, double b, double c) { return __builtin_fma(a, b, c); }
template <class T>
struct Fma {
  static T apply(T a, T b, T c) { return canonical(fused(a, b, c)); }
};
template <class F>
struct Sat {
  template <class... A>
  static auto apply(A... a) {
    return saturated(F::apply(a...));
  }
};
// div.approx multiplies by a reciprocal that underflows above 2^126.
struct DivApprox {
  static float apply(float a, float b) {
    const float magnitude = std::fabs(b);
    const float q = magnitude > 0x1p126f && magnitude < __builtin_inff() ? a * std::copysign(0.0f, b) : a / b;
    return canonical(q);
  }
};
template <class T>
struct Rcp {
  static T apply(T a) { return canonical(T{1} / a); }
};
inline float root(float a) { return __builtin_sqrtf(a); }
inline double root(double a) { return __builtin_sqrt(a); }
template <class T>
struct Sqrt {
  static T apply(T a) { return canonical(root(a)); }
};
template <class T>
struct Rsqrt {
  static T apply(T a) { return canonical(T{1} / root(a)); }
};
// rcp.approx.ftz.f64 and rsqrt.approx.ftz.f64 see the upper word of their operand, and give that of the result.
inline double upper_word(double a) {
  const double v = double_of(bits_of(a) & 0xffffffff00000000u);
  return std::fabs(v) < 0x1p-1022 ? std::copysign(0.0, v) : v;
}
inline double high_result(double v) { return v != v ? double_of(0x7fffffff00000000u) : upper_word(v); }
struct RcpHigh {
  static double apply(double a) { return high_result(1.0 / upper_word(a)); }
};
struct RsqrtHigh {
  static double apply(double a) { return high_result(1.0 / root(upper_word(a))); }
};

template <class T>
struct Bits;
template <>
struct Bits<float> {
  using type = std::uint32_t;
};
template <>
struct Bits<double> {
  using type = std::uint64_t;
};
template <class T>
inline constexpr typename Bits<T>::type kSign = typename Bits<T>::type{1} << (8 * sizeof(T) - 1);
template <class T>
T from_bits(typename Bits<T>::type b) {
  return std::bit_cast<T>(b);
}

// NaN out of an operation on bits: one pattern in f32, the operand's own (quiet, sign and all) in f64.
inline float kept_nan(float) { return float_of(kNan32); }
inline double kept_nan(double v) { return quieted(v); }

template <class T, bool Flush>
struct Abs {
  static T apply(T a) {
    const T v = Flush ? flushed(a) : a;
    return v != v ? kept_nan(v) : from_bits<T>(bits_of(v) & ~kSign<T>);
  }
};
template <class T, bool Flush>
struct Neg {
  static T apply(T a) {
    const T v = Flush ? flushed(a) : a;
    return v != v ? kept_nan(v) : from_bits<T>(bits_of(v) ^ kSign<T>);
  }
};

// +0 is above -0; one NaN gives the other operand, two NaN (or any with .NaN) the canonical NaN.
template <class T>
bool below(T a, T b) {
  return a < b || (a == b && (bits_of(a) & kSign<T>) > (bits_of(b) & kSign<T>));
}
template <class T, bool Max, bool Flush, bool Nan, bool Xorsign>
struct MinMax {
  static T apply(T a0, T b0) {
    T a = Flush ? flushed(a0) : a0, b = Flush ? flushed(b0) : b0;
    const auto sign = (bits_of(a) ^ bits_of(b)) & kSign<T>;
    if (Xorsign) a = from_bits<T>(bits_of(a) & ~kSign<T>), b = from_bits<T>(bits_of(b) & ~kSign<T>);
    const bool na = a != a, nb = b != b;
    const T chosen = (Max ? below(a, b) : below(b, a)) ? b : a;
    const T some = na ? b : nb ? a : chosen;
    if (Nan ? (na || nb) : (na && nb)) return kept_nan(b);
    return Xorsign ? from_bits<T>(bits_of(some) | sign) : some;
  }
};
template <class T>
struct Copysign {
  static T apply(T a, T b) { return from_bits<T>((bits_of(b) & ~kSign<T>) | (bits_of(a) & kSign<T>)); }
};

enum class Test { finite, infinite, number, notanumber, normal, subnormal };
template <class T, Test Q>
const Inst* testp(const Inst& i, Warp& w, Mask mask) {
  const T* a = w.at<const T>(i.a);
  constexpr T smallest = sizeof(T) == 4 ? static_cast<T>(0x1p-126) : static_cast<T>(0x1p-1022);
  set_predicate(w, i.d, mask_of([=](unsigned l) {
                  const auto b = bits_of(a[l]) & ~kSign<T>;
                  const auto infinity = bits_of(static_cast<T>(__builtin_inf()));
                  switch (Q) {
                    case Test::finite: return b < infinity;
                    case Test::infinite: return b == infinity;
                    case Test::number: return b <= infinity;
                    case Test::notanumber: return b > infinity;
                    case Test::normal: return b < infinity && (b >= bits_of(smallest) || b == 0);  // zero counts
                    case Test::subnormal: return b != 0 && b < bits_of(smallest);
                  }
                  return false;
                }),
                mask);
  return &i + 1;
}

// ---- decoding ----------------------------------------------------------------------------------------------------

char rounding(Decoder& d) {
  const int r = d.accept_one({"rn", "rz", "rm", "rp"});
  return r < 0 ? '\0' : "nzmp"[r];
}

void emit(Decoder& d, Handler h, Type t, std::size_t sources, Mode mode) {
  d.end(sources + 1);
  Slot s[3] = {};
  for (std::size_t k = 0; k < sources; ++k) s[k] = d.source(k + 1, t);
  const Slot r = d.destination(0, t);
  d.need_mode(mode);
  d.klass(t == Type::f64 ? InstructionClass::float64 : InstructionClass::float32);
  Inst& i = d.emit(h);
  i.a = s[0], i.b = s[1], i.c = s[2], i.d = r;
}

template <template <class> class F>
Handler binary_for(Type t, bool sat) {
  if (t == Type::f64) return binary<double, double, double, F<double>>;
  return sat ? binary<float, float, float, Sat<F<float>>> : binary<float, float, float, F<float>>;
}

}  // namespace

void decode_float_arithmetic(Decoder& d, std::string_view what) {
  const char r = rounding(d);
  const bool flush = d.flush(), sat = d.accept("sat");
  const Type t = d.type({Type::f32, Type::f64});
  if (t == Type::f64 && (flush || sat)) d.fail(".ftz and .sat need .f32");
  const bool fma = what == "fma";
  if (fma && r == '\0') d.fail("needs a rounding mode");
  const Mode mode{flush, r == '\0' ? 'n' : r};
  if (fma) {
    const Handler h = t == Type::f64 ? ternary<double, double, double, double, Fma<double>>
                      : sat          ? ternary<float, float, float, float, Sat<Fma<float>>>
                                     : ternary<float, float, float, float, Fma<float>>;
    return emit(d, h, t, 3, mode);
  }
  emit(d,
       what == "add"   ? binary_for<Add>(t, sat)
       : what == "sub" ? binary_for<Sub>(t, sat)
                       : binary_for<Mul>(t, sat),
       t, 2, mode);
}

void decode_float_div(Decoder& d) {
  const bool approx = d.accept("approx"), full = d.accept("full");
  const char r = rounding(d);
  const bool flush = d.flush();
  const Type t = d.type({Type::f32, Type::f64});
  if (t == Type::f64 && (approx || full || flush || r == '\0'))
    d.fail("div.f64 needs a rounding mode, and nothing else");
  if (!approx && !full && r == '\0') d.fail("needs .approx, .full or a rounding mode");
  if (approx) return emit(d, binary<float, float, float, DivApprox>, t, 2, {flush, 'n'});
  emit(d, binary_for<Div>(t, false), t, 2, {flush, full ? 'n' : r});
}

void decode_float_abs_neg(Decoder& d, bool abs) {
  const bool flush = d.flush();
  const Type t = d.type({Type::f32, Type::f64});
  if (t == Type::f64)
    return emit(d, abs ? unary<double, double, Abs<double, false>> : unary<double, double, Neg<double, false>>, t, 1,
                {});
  emit(d,
       flush ? (abs ? unary<float, float, Abs<float, true>> : unary<float, float, Neg<float, true>>)
             : (abs ? unary<float, float, Abs<float, false>> : unary<float, float, Neg<float, false>>),
       t, 1, {});
}

namespace {

template <bool Max, bool Flush>
Handler min_max32(bool nan, bool xorsign) {
  return nan ? (xorsign ? binary<float, float, float, MinMax<float, Max, Flush, true, true>>
                        : binary<float, float, float, MinMax<float, Max, Flush, true, false>>)
             : (xorsign ? binary<float, float, float, MinMax<float, Max, Flush, false, true>>
                        : binary<float, float, float, MinMax<float, Max, Flush, false, false>>);
}

// rcp, sqrt, rsqrt
void root_like(Decoder& d, Handler f32, Handler f64, Handler high, bool rounded_forms) {
  const bool approx = d.accept("approx");
  const char r = rounding(d);
  const bool flush = d.flush();
  const Type t = d.type({Type::f32, Type::f64});
  if (approx == (r != '\0')) d.fail("needs .approx or a rounding mode");
  if (r != '\0' && !rounded_forms) d.fail("only .approx exists");
  if (t == Type::f64 && r != '\0' && flush) d.fail(".ftz needs .f32 or .approx");
  if (t == Type::f64 && approx) {
    // Without .ftz there is only rsqrt, in full precision.
    const Handler h = flush ? high : f64;
    if (h == nullptr || (!flush && rounded_forms)) d.refuse_type(t);
    emit(d, h, t, 1, {false, 'n'});
  } else {
    emit(d, t == Type::f64 ? f64 : f32, t, 1, {flush, approx ? 'n' : r});
  }
  if (approx && t == Type::f32) d.klass(InstructionClass::special);
}

void rcp(Decoder& d) {
  root_like(d, unary<float, float, Rcp<float>>, unary<double, double, Rcp<double>>, unary<double, double, RcpHigh>,
            true);
}
void sqrt(Decoder& d) {
  root_like(d, unary<float, float, Sqrt<float>>, unary<double, double, Sqrt<double>>, nullptr, true);
}
void rsqrt(Decoder& d) {
  root_like(d, unary<float, float, Rsqrt<float>>, unary<double, double, Rsqrt<double>>,
            unary<double, double, RsqrtHigh>, false);
}

void copysign(Decoder& d) {
  const Type t = d.type({Type::f32, Type::f64});
  emit(d,
       t == Type::f64 ? binary<double, double, double, Copysign<double>> : binary<float, float, float, Copysign<float>>,
       t, 2, {});
}

template <class T>
Handler testp_handler(int q) {
  static constexpr Handler kTests[] = {testp<T, Test::finite>,     testp<T, Test::infinite>, testp<T, Test::number>,
                                       testp<T, Test::notanumber>, testp<T, Test::normal>,   testp<T, Test::subnormal>};
  return kTests[q];
}
void testp_decode(Decoder& d) {
  const int q = d.accept_one({"finite", "infinite", "number", "notanumber", "normal", "subnormal"});
  const Type t = d.type({Type::f32, Type::f64});
  if (q < 0) d.fail("needs the property to test");
  d.end(2);
  const Slot a = d.source(1, t), r = d.predicate_destination(d.operand(0));
  Inst& i = d.emit(t == Type::f64 ? testp_handler<double>(q) : testp_handler<float>(q));
  i.a = a, i.d = r;
}

}  // namespace

void decode_float_min_max(Decoder& d, bool min) {
  const bool flush = d.flush(), nan = d.accept("NaN"), xorsign = d.accept("xorsign");
  const bool abs = d.accept("abs");
  const Type t = d.type({Type::f32, Type::f64});
  if (xorsign != abs) d.fail(".xorsign and .abs go together");
  if (d.count() != 3) d.fail("three operands need sm_100 or later");
  if (t == Type::f64) {
    if (flush || nan || xorsign) d.fail("f64 takes no modifier");
    return emit(d,
                min ? binary<double, double, double, MinMax<double, false, false, false, false>>
                    : binary<double, double, double, MinMax<double, true, false, false, false>>,
                t, 2, {});
  }
  // Comparing needs the host not to treat subnormals as zero when they count.
  emit(d,
       min ? (flush ? min_max32<false, true>(nan, xorsign) : min_max32<false, false>(nan, xorsign))
           : (flush ? min_max32<true, true>(nan, xorsign) : min_max32<true, false>(nan, xorsign)),
       t, 2, {flush, 'n'});
}

std::span<const Opcode> float_opcodes() {
  static constexpr auto k = InstructionClass::float32;
  static const Opcode table[] = {
      {"rcp", rcp, k}, {"sqrt", sqrt, k}, {"rsqrt", rsqrt, k}, {"copysign", copysign, k}, {"testp", testp_decode, k}};
  return table;
}

}  // namespace machine
