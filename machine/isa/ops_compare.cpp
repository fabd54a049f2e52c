// Comparison and selection: setp set selp slct.
#include "exec/lanes.hpp"
#include "exec/real.hpp"
#include "isa/comparison.hpp"
#include "isa/families.hpp"

namespace machine {
namespace {

using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;
using s16 = std::int16_t;
using s32 = std::int32_t;
using s64 = std::int64_t;

#if MACHINE_AVX512
constexpr int integer_predicate(Cmp c) {
  constexpr int table[] = {0, 4, 1, 2, 6, 5};
  return table[static_cast<int>(c)];
}
constexpr int float_predicate(Cmp c) {
  constexpr int table[] = {_CMP_EQ_OQ,  _CMP_NEQ_OQ, _CMP_LT_OQ,  _CMP_LE_OQ,  _CMP_GT_OQ,  _CMP_GE_OQ, _CMP_EQ_UQ,
                           _CMP_NEQ_UQ, _CMP_NGE_UQ, _CMP_NGT_UQ, _CMP_NLE_UQ, _CMP_NLT_UQ, _CMP_ORD_Q, _CMP_UNORD_Q};
  return table[static_cast<int>(c)];
}
template <Cmp C, class T>
Mask compare(const T* a, const T* b) {
  Mask m = 0;
  if constexpr (sizeof(T) == 2) {
    const __m512i x = _mm512_load_si512(a), y = _mm512_load_si512(b);
    if constexpr (std::is_signed_v<T>) m = _mm512_cmp_epi16_mask(x, y, integer_predicate(C));
    else m = _mm512_cmp_epu16_mask(x, y, integer_predicate(C));
  } else if constexpr (sizeof(T) == 4) {
    for (unsigned g = 0; g < 2; ++g) {
      const __m512i x = _mm512_load_si512(a + 16 * g), y = _mm512_load_si512(b + 16 * g);
      Mask part;
      if constexpr (std::is_floating_point_v<T>)
        part = _mm512_cmp_ps_mask(_mm512_castsi512_ps(x), _mm512_castsi512_ps(y), float_predicate(C));
      else if constexpr (std::is_signed_v<T>) part = _mm512_cmp_epi32_mask(x, y, integer_predicate(C));
      else part = _mm512_cmp_epu32_mask(x, y, integer_predicate(C));
      m |= part << (16 * g);
    }
  } else {
    for (unsigned g = 0; g < 4; ++g) {
      const __m512i x = _mm512_load_si512(a + 8 * g), y = _mm512_load_si512(b + 8 * g);
      Mask part;
      if constexpr (std::is_floating_point_v<T>)
        part = _mm512_cmp_pd_mask(_mm512_castsi512_pd(x), _mm512_castsi512_pd(y), float_predicate(C));
      else if constexpr (std::is_signed_v<T>) part = _mm512_cmp_epi64_mask(x, y, integer_predicate(C));
      else part = _mm512_cmp_epu64_mask(x, y, integer_predicate(C));
      m |= part << (8 * g);
    }
  }
  return m;
}
#else
template <Cmp C, class T>
Mask compare(const T* a, const T* b) {
  return mask_of([=](unsigned l) { return holds(C, a[l], b[l]); });
}
#endif

// Halves are compared as floats.
struct HalfTag {
  using raw = u16;
  static float widen(u16 v) { return half_to_float(v); }
};
struct BfloatTag {
  using raw = u16;
  static float widen(u16 v) { return bfloat_to_float(v); }
};
template <class T>
concept is_tag = requires { typename T::raw; };

template <Cmp C, class T>
Mask result_of(const Inst& i, Warp& w) {
  if constexpr (is_tag<T>) {
    const u16 *a = w.at<const u16>(i.a), *b = w.at<const u16>(i.b);
    const bool flush = i.extra >> 31;
    return mask_of([=](unsigned l) {
      u16 x = a[l], y = b[l];
      if (flush && (x & 0x7c00) == 0) x &= 0x8000;
      if (flush && (y & 0x7c00) == 0) y &= 0x8000;
      return holds(C, T::widen(x), T::widen(y));
    });
  } else {
    return compare<C, T>(w.at<const T>(i.a), w.at<const T>(i.b));
  }
}

// extra: bits 0-1 boolean op (0 none, 1 and, 2 or, 3 xor); bit 2: second destination in slots[0]
template <Cmp C, class T>
const Inst* setp_plain(const Inst& i, Warp& w, Mask mask) {
  set_predicate(w, i.d, result_of<C, T>(i, w), mask);
  return &i + 1;
}
Mask combined(const Inst& i, Mask r, Mask c) {
  switch (i.extra & 3) {
    case 1: return r & c;
    case 2: return r | c;
    case 3: return r ^ c;
    default: return r;
  }
}
template <Cmp C, class T>
const Inst* setp_general(const Inst& i, Warp& w, Mask mask) {
  const Mask r = result_of<C, T>(i, w), c = w.predicate(i.c) ^ static_cast<Mask>(i.imm);
  const Mask p = combined(i, r, c), q = combined(i, ~r, c);
  set_predicate(w, i.d, p, mask);
  if (i.extra & 4) set_predicate(w, i.e, q, mask);
  return &i + 1;
}
// set: the result as ~0 / 1.0f by lane. extra bits 4-5: 0 u32, 1 f32, 2 u16 (all ones), 3 half one; imm2 in e: value of
// one
template <Cmp C, class T>
const Inst* set_value(const Inst& i, Warp& w, Mask mask) {
  const Mask c = w.predicate(i.c) ^ static_cast<Mask>(i.imm);
  const Mask r = combined(i, result_of<C, T>(i, w), c);
  const u32 one = i.e;
  if (i.extra & 16) each_lane(w.at<u16>(i.d), mask, [=](unsigned l) { return static_cast<u16>(r >> l & 1 ? one : 0); });
  else each_lane(w.at<u32>(i.d), mask, [=](unsigned l) { return r >> l & 1 ? one : 0u; });
  return &i + 1;
}

// Two halves in one register.
struct Halves {
  Mask low, high;
};
template <Cmp C, class T>
Halves compared(const Inst& i, Warp& w) {
  const u32 *a = w.at<const u32>(i.a), *b = w.at<const u32>(i.b);
  const u32 flushed = i.extra >> 31 != 0 ? 0x7c00u : 0;  // halves without these bits count as zero
  const auto half = [=](u32 v) {
    return T::widen(static_cast<u16>((v & flushed) == 0 && flushed != 0 ? v & 0x8000u : v));
  };
  return {mask_of([=](unsigned l) { return holds(C, half(a[l] & 0xffff), half(b[l] & 0xffff)); }),
          mask_of([=](unsigned l) { return holds(C, half(a[l] >> 16), half(b[l] >> 16)); })};
}
template <Cmp C, class T>
const Inst* setp_halves(const Inst& i, Warp& w, Mask mask) {
  const Halves r = compared<C, T>(i, w);
  const Mask c = w.predicate(i.c) ^ static_cast<Mask>(i.imm);
  set_predicate(w, i.d, combined(i, r.low, c), mask);
  set_predicate(w, i.e, combined(i, r.high, c), mask);
  return &i + 1;
}
template <Cmp C, class T>
const Inst* set_halves(const Inst& i, Warp& w, Mask mask) {
  const Halves r = compared<C, T>(i, w);
  const Mask c = w.predicate(i.c) ^ static_cast<Mask>(i.imm);
  const Mask low = combined(i, r.low, c), high = combined(i, r.high, c);
  const u32 one = i.e;
  each_lane(w.at<u32>(i.d), mask,
            [=](unsigned l) { return (low >> l & 1 ? one : 0u) | (high >> l & 1 ? one << 16 : 0u); });
  return &i + 1;
}

struct Handlers {
  Handler plain, general, value, setp_halves = nullptr, set_halves = nullptr;
};
template <class T, Cmp C>
constexpr Handlers handlers_of() {
  if constexpr (is_tag<T>)
    return {setp_plain<C, T>, setp_general<C, T>, set_value<C, T>, setp_halves<C, T>, set_halves<C, T>};
  else return {setp_plain<C, T>, setp_general<C, T>, set_value<C, T>};
}
template <class T>
Handlers for_integer(Cmp c) {
  static constexpr Handlers table[] = {handlers_of<T, Cmp::eq>(), handlers_of<T, Cmp::ne>(), handlers_of<T, Cmp::lt>(),
                                       handlers_of<T, Cmp::le>(), handlers_of<T, Cmp::gt>(), handlers_of<T, Cmp::ge>()};
  return table[static_cast<int>(c)];
}
template <class T>
Handlers for_float(Cmp c) {
  static constexpr Handlers table[] = {
      handlers_of<T, Cmp::eq>(),  handlers_of<T, Cmp::ne>(),  handlers_of<T, Cmp::lt>(),  handlers_of<T, Cmp::le>(),
      handlers_of<T, Cmp::gt>(),  handlers_of<T, Cmp::ge>(),  handlers_of<T, Cmp::equ>(), handlers_of<T, Cmp::neu>(),
      handlers_of<T, Cmp::ltu>(), handlers_of<T, Cmp::leu>(), handlers_of<T, Cmp::gtu>(), handlers_of<T, Cmp::geu>(),
      handlers_of<T, Cmp::num>(), handlers_of<T, Cmp::nan>()};
  return table[static_cast<int>(c)];
}

Handlers choose(Decoder& d, Type t, int c) {
  const Cmp cmp = static_cast<Cmp>(c);
  if (is_float(t)) {
    switch (t) {
      case Type::f32: return for_float<float>(cmp);
      case Type::f64: return for_float<double>(cmp);
      case Type::f16: return for_float<HalfTag>(cmp);
      default: return for_float<BfloatTag>(cmp);
    }
  }
  if (c > 5) d.fail("comparison of floating-point values on integers");
  if (is_bits(t) && c > 1) d.fail("only .eq and .ne compare bits");
  switch (t) {
    case Type::b16:
    case Type::u16: return for_integer<u16>(cmp);
    case Type::s16: return for_integer<s16>(cmp);
    case Type::b32:
    case Type::u32: return for_integer<u32>(cmp);
    case Type::s32: return for_integer<s32>(cmp);
    case Type::b64:
    case Type::u64: return for_integer<u64>(cmp);
    case Type::s64: return for_integer<s64>(cmp);
    default: d.refuse_type(t);
  }
}

int comparison(Decoder& d) {
  if (const int c = d.accept_one(kComparisons); c >= 0) return c;
  const int u = d.accept_one(kUnsignedComparisons);
  if (u < 0) d.fail("needs a comparison");
  return static_cast<int>(Cmp::lt) + u;
}

struct Combine {
  Slot c = 0;
  std::int64_t flip = 0;
  u32 op = 0;
};
Combine combine_operand(Decoder& d, int op, std::size_t index) {
  Combine result;
  if (op < 0) return result;
  Operand c = d.operand(index);
  result.flip = c.negated ? -1 : 0;
  c.negated = false;
  result.c = d.predicate_source(c);
  result.op = static_cast<u32>(op + 1);
  return result;
}

bool is_pair(Type t) { return t == Type::f16x2 || t == Type::bf16x2; }
Type half_of(Type t) { return t == Type::f16x2 ? Type::f16 : Type::bf16; }

// Comparing two pairs: each half to its own predicate.
void setp_pair(Decoder& d, Type t, int c, int op, bool flush) {
  d.end(op < 0 ? 3 : 4);
  if (flush && t != Type::f16x2) d.fail("bf16 takes no .ftz");
  if (d.operand(0).kind != Operand::list || !d.operand(0).piped) d.fail("needs two predicates, p|q");
  const Slot a = d.source(1, Type::b32), b = d.source(2, Type::b32);
  const Slot p = d.predicate_destination(d.operand(0).parts[0]), q = d.predicate_destination(d.operand(0).parts[1]);
  const Combine k = combine_operand(d, op, 3);
  d.need_mode({false, 'n'});
  Inst& i = d.emit(choose(d, half_of(t), c).setp_halves);
  i.a = a, i.b = b, i.c = k.c, i.d = p, i.e = q, i.imm = k.flip, i.extra = k.op | (flush ? 1u << 31 : 0);
}

void setp(Decoder& d) {
  const int c = comparison(d);
  const int op = d.accept_one({"and", "or", "xor"});
  const bool flush = d.flush();
  const Type t = d.type();
  if (is_pair(t)) return setp_pair(d, t, c, op, flush);
  if (flush && t != Type::f32 && t != Type::f16) d.fail(".ftz needs .f32 or .f16");
  d.end(op < 0 ? 3 : 4);
  const Handlers h = choose(d, t, c);
  const Slot a = d.source(1, t), b = d.source(2, t);
  const bool pair = d.operand(0).kind == Operand::list;
  if (pair && !d.operand(0).piped) d.fail("bad destination");
  const Slot p = d.predicate_destination(pair ? d.operand(0).parts[0] : d.operand(0));
  const Slot q = pair ? d.predicate_destination(d.operand(0).parts[1]) : 0;
  const Combine k = combine_operand(d, op, 3);
  if (is_float(t)) d.need_mode({flush && t == Type::f32, 'n'});
  Inst& i = d.emit(op < 0 && !pair ? h.plain : h.general);
  i.a = a, i.b = b, i.c = k.c, i.d = p, i.e = q, i.imm = k.flip;
  i.extra = k.op | (pair ? 4u : 0) | (flush && t == Type::f16 ? 1u << 31 : 0);
}

u32 one_of(Type to) {
  switch (to) {
    case Type::f32: return 0x3f800000u;
    case Type::f16:
    case Type::f16x2: return 0x3c00u;
    case Type::bf16:
    case Type::bf16x2: return 0x3f80u;
    default: return bytes_of(to) == 2 ? 0xffffu : 0xffffffffu;
  }
}

// Of two pairs: halves of all ones, or of 1.0.
void set_pair(Decoder& d, Type to, Type t, int c, int op, bool flush) {
  if (to != t && to != Type::u32 && to != Type::s32) d.refuse_type(to);
  if (flush && t != Type::f16x2) d.fail("bf16 takes no .ftz");
  d.end(op < 0 ? 3 : 4);
  const Slot a = d.source(1, Type::b32), b = d.source(2, Type::b32), r = d.destination(0, Type::b32);
  const Combine k = combine_operand(d, op, 3);
  d.need_mode({false, 'n'});
  Inst& i = d.emit(choose(d, half_of(t), c).set_halves);
  i.a = a, i.b = b, i.c = k.c, i.d = r, i.e = is_pair(to) ? one_of(to) : 0xffffu, i.imm = k.flip,
  i.extra = k.op | (flush ? 1u << 31 : 0);
}

void set(Decoder& d) {
  const int c = comparison(d);
  const int op = d.accept_one({"and", "or", "xor"});
  const bool flush = d.flush();
  const Type to =
      d.type({Type::u32, Type::s32, Type::f32, Type::f16, Type::bf16, Type::u16, Type::s16, Type::f16x2, Type::bf16x2});
  const Type t = d.type();
  if (is_pair(t)) return set_pair(d, to, t, c, op, flush);
  if (is_pair(to)) d.refuse_type(to);
  d.end(op < 0 ? 3 : 4);
  const Handlers h = choose(d, t, c);
  const Slot a = d.source(1, t), b = d.source(2, t), r = d.destination(0, to);
  const Combine k = combine_operand(d, op, 3);
  if (is_float(t)) d.need_mode({flush && t == Type::f32, 'n'});
  Inst& i = d.emit(h.value);
  i.a = a, i.b = b, i.c = k.c, i.d = r, i.e = one_of(to), i.imm = k.flip;
  i.extra = k.op | (bytes_of(to) == 2 ? 16u : 0) | (flush && t == Type::f16 ? 1u << 31 : 0);
}

template <class T>
const Inst* selp(const Inst& i, Warp& w, Mask mask) {
  const T *a = w.at<const T>(i.a), *b = w.at<const T>(i.b);
  const Mask p = w.predicate(i.c) ^ static_cast<Mask>(i.imm);
  alignas(64) T t[kWarp];
  std::memcpy(t, b, sizeof t);
  blend(t, a, p);
  T* d = w.at<T>(i.d);
  if (mask == kFullMask) std::memcpy(d, t, sizeof t);
  else blend(d, t, mask);
  return &i + 1;
}
const Inst* selp_predicate(const Inst& i, Warp& w, Mask mask) {
  const Mask p = w.predicate(i.c) ^ static_cast<Mask>(i.imm);
  set_predicate(w, i.d, (w.predicate(i.a) & p) | (w.predicate(i.b) & ~p), mask);
  return &i + 1;
}

void selp_decode(Decoder& d) {
  const Type t = d.type();
  const unsigned bytes = bytes_of(t);
  if (t != Type::pred && bytes != 2 && bytes != 4 && bytes != 8) d.refuse_type(t);
  d.end(4);
  const Slot a = d.source(1, t), b = d.source(2, t), r = d.destination(0, t);
  Operand c = d.operand(3);
  const bool flip = c.negated;
  c.negated = false;
  const Slot p = d.predicate_source(c);
  Inst& i = d.emit(t == Type::pred ? selp_predicate : bytes == 2 ? selp<u16> : bytes == 4 ? selp<u32> : selp<u64>);
  i.a = a, i.b = b, i.c = p, i.d = r, i.imm = flip ? -1 : 0;
}

template <class T, class C>
const Inst* slct(const Inst& i, Warp& w, Mask mask) {
  const T *a = w.at<const T>(i.a), *b = w.at<const T>(i.b);
  const C* c = w.at<const C>(i.c);
  each_lane(w.at<T>(i.d), mask, [=](unsigned l) { return c[l] >= C{0} ? a[l] : b[l]; });
  return &i + 1;
}
void slct_decode(Decoder& d) {
  const bool flush = d.flush();
  const Type t = d.type(), by = d.type({Type::s32, Type::f32});
  const unsigned bytes = bytes_of(t);
  if (bytes != 2 && bytes != 4 && bytes != 8) d.refuse_type(t);
  d.end(4);
  const Slot a = d.source(1, t), b = d.source(2, t), c = d.source(3, by), r = d.destination(0, t);
  if (by == Type::f32) d.need_mode({flush, 'n'});
  const bool f = by == Type::f32;
  Inst& i = d.emit(bytes == 2   ? (f ? slct<u16, float> : slct<u16, s32>)
                   : bytes == 4 ? (f ? slct<u32, float> : slct<u32, s32>)
                                : (f ? slct<u64, float> : slct<u64, s32>));
  i.a = a, i.b = b, i.c = c, i.d = r;
}

}  // namespace

std::span<const Opcode> compare_opcodes() {
  static constexpr auto k = InstructionClass::predicate;
  static const Opcode table[] = {
      {"setp", setp, k}, {"set", set, k}, {"selp", selp_decode, k}, {"slct", slct_decode, k}};
  return table;
}

}  // namespace machine
