// Logic and bit fields: and or xor not cnot shl shr shf lop3 prmt bfi bfe bfind fns brev clz popc bmsk szext.
#include "exec/lanes.hpp"
#include "isa/families.hpp"
#include "isa/lane_bits.hpp"

namespace machine {
namespace {

using namespace lane_bits;

// ---- handlers ----------------------------------------------------------------------------------------------------

enum class Logic { and_, or_, xor_, not_ };
template <Logic L>
const Inst* logic_predicate(const Inst& i, Warp& w, Mask mask) {
  const Mask a = w.predicate(i.a);
  Mask r;
  if constexpr (L == Logic::not_) r = ~a;
  else r = L == Logic::and_ ? a & w.predicate(i.b) : L == Logic::or_ ? a | w.predicate(i.b) : a ^ w.predicate(i.b);
  set_predicate(w, i.d, r, mask);
  return &i + 1;
}

const Inst* lop3(const Inst& i, Warp& w, Mask mask) {
  const u32 *a = w.at<const u32>(i.a), *b = w.at<const u32>(i.b), *c = w.at<const u32>(i.c);
  u32 m[8];
  for (unsigned k = 0; k < 8; ++k) m[k] = i.extra >> k & 1 ? ~0u : 0u;
  each_lane(w.at<u32>(i.d), mask, [=](unsigned l) {
    const u32 x = a[l], y = b[l], z = c[l];
    const u32 low = (~x & ((~y & ((~z & m[0]) | (z & m[1]))) | (y & ((~z & m[2]) | (z & m[3])))));
    const u32 high = (x & ((~y & ((~z & m[4]) | (z & m[5]))) | (y & ((~z & m[6]) | (z & m[7])))));
    return low | high;
  });
  return &i + 1;
}
// lop3.and/or with a predicate: p = (r != 0) op q
template <bool Or>
const Inst* lop3_predicate(const Inst& i, Warp& w, Mask mask) {
  const u32 *a = w.at<const u32>(i.a), *b = w.at<const u32>(i.b), *c = w.at<const u32>(i.c);
  u32* d = w.at<u32>(i.d);
  const Mask q = w.predicate(i.e) ^ static_cast<Mask>(i.imm);
  Mask p = 0;
  for_lanes(mask, [&](unsigned l) {
    u32 r = 0;
    for (unsigned k = 0; k < 32; ++k)
      r |= (i.extra >> ((a[l] >> k & 1) << 2 | (b[l] >> k & 1) << 1 | (c[l] >> k & 1)) & 1) << k;
    d[l] = r;
    p |= Mask{r != 0} << l;
  });
  set_predicate(w, i.slots[0], Or ? p | q : p & q, mask);
  return &i + 1;
}

template <class T>
const Inst* bfi(const Inst& i, Warp& w, Mask mask) {
  const T *a = w.at<const T>(i.a), *b = w.at<const T>(i.b);
  const u32 *c = w.at<const u32>(i.c), *e = w.at<const u32>(i.e);
  each_lane(w.at<T>(i.d), mask, [=](unsigned l) { return Bfi<T>::apply(a[l], b[l], c[l], e[l]); });
  return &i + 1;
}
template <class T>
const Inst* bfe(const Inst& i, Warp& w, Mask mask) {
  const T* a = w.at<const T>(i.a);
  const u32 *b = w.at<const u32>(i.b), *c = w.at<const u32>(i.c);
  each_lane(w.at<T>(i.d), mask, [=](unsigned l) { return Bfe<T>::apply(a[l], b[l], c[l]); });
  return &i + 1;
}

// ---- decoding ----------------------------------------------------------------------------------------------------

template <template <class> class F, Logic L>
void logic(Decoder& d) {
  const Type t = d.type({Type::pred, Type::b16, Type::b32, Type::b64});
  d.end(3);
  const Slot a = d.source(1, t), b = d.source(2, t), r = d.destination(0, t);
  const Handler h = t == Type::pred  ? logic_predicate<L>
                    : t == Type::b16 ? binary<u16, u16, u16, F<u16>>
                    : t == Type::b32 ? binary<u32, u32, u32, F<u32>>
                                     : binary<u64, u64, u64, F<u64>>;
  if (t == Type::pred) d.klass(InstructionClass::predicate);
  Inst& i = d.emit(h);
  i.a = a, i.b = b, i.d = r;
}

void one(Decoder& d, Handler h, Type result, Type t) {
  d.end(2);
  const Slot a = d.source(1, t), r = d.destination(0, result);
  Inst& i = d.emit(h);
  i.a = a, i.d = r;
}

void not_(Decoder& d) {
  const Type t = d.type({Type::pred, Type::b16, Type::b32, Type::b64});
  if (t == Type::pred) d.klass(InstructionClass::predicate);
  one(d,
      t == Type::pred  ? logic_predicate<Logic::not_>
      : t == Type::b16 ? unary<u16, u16, Not<u16>>
      : t == Type::b32 ? unary<u32, u32, Not<u32>>
                       : unary<u64, u64, Not<u64>>,
      t, t);
}
void cnot(Decoder& d) {
  const Type t = d.type({Type::b16, Type::b32, Type::b64});
  one(d,
      t == Type::b16   ? unary<u16, u16, Cnot<u16>>
      : t == Type::b32 ? unary<u32, u32, Cnot<u32>>
                       : unary<u64, u64, Cnot<u64>>,
      t, t);
}

void shift(Decoder& d, Handler h, Type t) {
  d.end(3);
  const Slot a = d.source(1, t), b = d.source(2, Type::b32), r = d.destination(0, t);
  Inst& i = d.emit(h);
  i.a = a, i.b = b, i.d = r;
}
void shl(Decoder& d) {
  const Type t = d.type({Type::b16, Type::b32, Type::b64});
  shift(d,
        t == Type::b16   ? binary<u16, u16, u32, Shl<u16>>
        : t == Type::b32 ? binary<u32, u32, u32, Shl<u32>>
                         : binary<u64, u64, u32, Shl<u64>>,
        t);
}
void shr(Decoder& d) {
  const Type t = d.type();
  switch (t) {
    case Type::b16:
    case Type::u16: return shift(d, binary<u16, u16, u32, Shr<u16>>, t);
    case Type::b32:
    case Type::u32: return shift(d, binary<u32, u32, u32, Shr<u32>>, t);
    case Type::b64:
    case Type::u64: return shift(d, binary<u64, u64, u32, Shr<u64>>, t);
    case Type::s16: return shift(d, binary<s16, s16, u32, Shr<s16>>, t);
    case Type::s32: return shift(d, binary<s32, s32, u32, Shr<s32>>, t);
    case Type::s64: return shift(d, binary<s64, s64, u32, Shr<s64>>, t);
    default: d.refuse_type(t);
  }
}

void three(Decoder& d, Handler h) {
  d.end(4);
  const Slot a = d.source(1, Type::b32), b = d.source(2, Type::b32), c = d.source(3, Type::b32),
             r = d.destination(0, Type::b32);
  Inst& i = d.emit(h);
  i.a = a, i.b = b, i.c = c, i.d = r;
}
void shf(Decoder& d) {
  const int side = d.accept_one({"l", "r"});
  const int mode = d.accept_one({"clamp", "wrap"});
  d.type({Type::b32});
  if (side < 0 || mode < 0) d.fail("needs .l or .r, and .clamp or .wrap");
  three(d, side == 0 ? (mode == 0 ? ternary<u32, u32, u32, u32, Funnel<true, false>>
                                  : ternary<u32, u32, u32, u32, Funnel<true, true>>)
                     : (mode == 0 ? ternary<u32, u32, u32, u32, Funnel<false, false>>
                                  : ternary<u32, u32, u32, u32, Funnel<false, true>>));
}
void prmt(Decoder& d) {
  d.type({Type::b32});
  const int mode = d.accept_one({"f4e", "b4e", "rc8", "ecl", "ecr", "rc16"});
  static constexpr Handler kModes[] = {
      ternary<u32, u32, u32, u32, PrmtBy<PrmtMode::f4e>>, ternary<u32, u32, u32, u32, PrmtBy<PrmtMode::b4e>>,
      ternary<u32, u32, u32, u32, PrmtBy<PrmtMode::rc8>>, ternary<u32, u32, u32, u32, PrmtBy<PrmtMode::ecl>>,
      ternary<u32, u32, u32, u32, PrmtBy<PrmtMode::ecr>>, ternary<u32, u32, u32, u32, PrmtBy<PrmtMode::rc16>>};
  three(d, mode < 0 ? permute : kModes[mode]);
}

void lop3_decode(Decoder& d) {
  const bool either = d.accept("or"), both = d.accept("and");
  d.type({Type::b32});
  if (!either && !both) {
    d.end(5);
    const Slot a = d.source(1, Type::b32), b = d.source(2, Type::b32), c = d.source(3, Type::b32),
               r = d.destination(0, Type::b32);
    const u32 table = d.immediate(4);
    if (table > 255) d.fail("table above 0xFF");
    Inst& i = d.emit(lop3);
    i.a = a, i.b = b, i.c = c, i.d = r, i.extra = table;
    return;
  }
  d.end(6);
  if (d.operand(0).kind != Operand::list || !d.operand(0).piped) d.fail("needs a destination and a predicate, d|p");
  const Slot a = d.source(1, Type::b32), b = d.source(2, Type::b32), c = d.source(3, Type::b32);
  const Slot r = d.destination(d.operand(0).parts[0], Type::b32), p = d.predicate_destination(d.operand(0).parts[1]);
  const u32 table = d.immediate(4);
  Operand q = d.operand(5);
  const bool flip = q.negated;
  q.negated = false;
  const Slot e = d.predicate_source(q);
  Inst& i = d.emit(either ? lop3_predicate<true> : lop3_predicate<false>);
  i.a = a, i.b = b, i.c = c, i.d = r, i.e = e, i.extra = table, i.imm = flip ? -1 : 0;
  i.slots = d.keep_slots({p});
}

void bfi_decode(Decoder& d) {
  const Type t = d.type({Type::b32, Type::b64});
  d.end(5);
  const Slot a = d.source(1, t), b = d.source(2, t), c = d.source(3, Type::b32), e = d.source(4, Type::b32),
             r = d.destination(0, t);
  Inst& i = d.emit(t == Type::b32 ? bfi<u32> : bfi<u64>);
  i.a = a, i.b = b, i.c = c, i.e = e, i.d = r;
}
void bfe_decode(Decoder& d) {
  const Type t = d.type({Type::u32, Type::u64, Type::s32, Type::s64});
  d.end(4);
  const Slot a = d.source(1, t), b = d.source(2, Type::b32), c = d.source(3, Type::b32), r = d.destination(0, t);
  Inst& i = d.emit(t == Type::u32 ? bfe<u32> : t == Type::u64 ? bfe<u64> : t == Type::s32 ? bfe<s32> : bfe<s64>);
  i.a = a, i.b = b, i.c = c, i.d = r;
}
void bfind(Decoder& d) {
  const bool shift_amount = d.accept("shiftamt");
  const Type t = d.type({Type::u32, Type::u64, Type::s32, Type::s64});
  const Handler h =
      t == Type::u32   ? (shift_amount ? unary<u32, u32, Bfind<u32, true>> : unary<u32, u32, Bfind<u32, false>>)
      : t == Type::u64 ? (shift_amount ? unary<u32, u64, Bfind<u64, true>> : unary<u32, u64, Bfind<u64, false>>)
      : t == Type::s32 ? (shift_amount ? unary<u32, s32, Bfind<s32, true>> : unary<u32, s32, Bfind<s32, false>>)
                       : (shift_amount ? unary<u32, s64, Bfind<s64, true>> : unary<u32, s64, Bfind<s64, false>>);
  one(d, h, Type::b32, t);
}
void brev(Decoder& d) {
  const Type t = d.type({Type::b32, Type::b64});
  one(d, t == Type::b32 ? unary<u32, u32, Brev32> : unary<u64, u64, Brev64>, t, t);
}
void clz(Decoder& d) {
  const Type t = d.type({Type::b32, Type::b64});
  one(d, t == Type::b32 ? unary<u32, u32, Clz<u32>> : unary<u32, u64, Clz<u64>>, Type::b32, t);
}
void popc(Decoder& d) {
  const Type t = d.type({Type::b32, Type::b64});
  one(d, t == Type::b32 ? unary<u32, u32, Popc<u32>> : unary<u32, u64, Popc<u64>>, Type::b32, t);
}
void fns(Decoder& d) {
  d.type({Type::b32});
  three(d, ternary<u32, u32, u32, s32, Fns>);
}
void two(Decoder& d, Handler h, Type t) {
  d.end(3);
  const Slot a = d.source(1, t), b = d.source(2, Type::b32), r = d.destination(0, t);
  Inst& i = d.emit(h);
  i.a = a, i.b = b, i.d = r;
}
void bmsk(Decoder& d) {
  const int mode = d.accept_one({"clamp", "wrap"});
  d.type({Type::b32});
  if (mode < 0) d.fail("needs .clamp or .wrap");
  two(d, mode == 0 ? binary<u32, u32, u32, Bmsk<true>> : binary<u32, u32, u32, Bmsk<false>>, Type::b32);
}
void szext(Decoder& d) {
  const int mode = d.accept_one({"clamp", "wrap"});
  const Type t = d.type({Type::u32, Type::s32});
  if (mode < 0) d.fail("needs .clamp or .wrap");
  two(d,
      t == Type::u32 ? (mode == 0 ? binary<u32, u32, u32, Szext<u32, true>> : binary<u32, u32, u32, Szext<u32, false>>)
                     : (mode == 0 ? binary<u32, s32, u32, Szext<s32, true>> : binary<u32, s32, u32, Szext<s32, false>>),
      t);
}

}  // namespace

std::span<const Opcode> bits_opcodes() {
  static constexpr auto k = InstructionClass::logic;
  static const Opcode table[] = {
      {"and", logic<And, Logic::and_>, k},
      {"or", logic<Or, Logic::or_>, k},
      {"xor", logic<Xor, Logic::xor_>, k},
      {"not", not_, k},
      {"cnot", cnot, k},
      {"shl", shl, k},
      {"shr", shr, k},
      {"shf", shf, k},
      {"lop3", lop3_decode, k},
      {"prmt", prmt, k},
      {"bfi", bfi_decode, k},
      {"bfe", bfe_decode, k},
      {"bfind", bfind, k},
      {"brev", brev, k},
      {"clz", clz, k},
      {"popc", popc, k},
      {"fns", fns, k},
      {"bmsk", bmsk, k},
      {"szext", szext, k},
  };
  return table;
}

}  // namespace machine
