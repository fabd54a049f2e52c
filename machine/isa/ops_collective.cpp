// Warp collectives: shfl.sync vote.sync match.sync redux.sync elect.sync activemask bar.warp.sync.
#include <algorithm>

#include "exec/collective.hpp"
#include "exec/fault.hpp"
#include "exec/undefined.hpp"
#include "isa/convert.hpp"
#include "isa/families.hpp"

namespace machine {
namespace {

using u32 = std::uint32_t;
using u64 = std::uint64_t;
using s32 = std::int32_t;

u64 bring_word(const Inst& i, const Warp& w, unsigned l) { return w.at<const u32>(i.a)[l]; }
u64 bring_double_word(const Inst& i, const Warp& w, unsigned l) { return w.at<const u64>(i.a)[l]; }
u64 bring_predicate(const Inst& i, const Warp& w, unsigned l) {
  return (w.predicate(i.a) ^ static_cast<Mask>(i.imm)) >> l & 1;
}

// The values of all present lanes: the register itself, or a copy completed with what was staged.
template <class T>
const T* values(const Meeting& m, const T* own, T* room) {
  if (m.staged == nullptr) return own;
  for (unsigned l = 0; l < kWarp; ++l) room[l] = m.lanes >> l & 1 ? own[l] : static_cast<T>(m.staged[l]);
  return room;
}

// ---- shfl --------------------------------------------------------------------------------------------------------

enum class Shuffle { up, down, bfly, idx };

// Source lane of each lane; bit l of the result: the source is inside the segment.
Mask sources(Shuffle mode, const u32* b, const u32* c, u32* from) {
  Mask inside = 0;
  for (unsigned l = 0; l < kWarp; ++l) {
    const s32 by = static_cast<s32>(b[l] & 31), clamp = static_cast<s32>(c[l] & 31),
              segment = static_cast<s32>(c[l] >> 8 & 31);
    const s32 lane = static_cast<s32>(l), low = lane & segment, high = low | (clamp & ~segment);
    s32 j = 0;
    bool in = false;
    switch (mode) {
      case Shuffle::up: j = lane - by, in = j >= high; break;
      case Shuffle::down: j = lane + by, in = j <= high; break;
      case Shuffle::bfly: j = lane ^ by, in = j <= high; break;
      case Shuffle::idx: j = low | (by & ~segment), in = j <= high; break;
    }
    from[l] = static_cast<u32>(in ? j : lane);
    inside |= Mask{in} << l;
  }
  return inside;
}

struct FixedShuffle {  // lane and segment operands are constants
  alignas(64) u32 from[kWarp];
  Mask inside;
};

void permute(u32* d, const u32* a, const u32* from, Mask lanes) {
  alignas(64) u32 t[kWarp];
#if MACHINE_AVX512
  const __m512i low = _mm512_loadu_si512(a), high = _mm512_loadu_si512(a + 16);
  for (unsigned g = 0; g < 2; ++g)
    _mm512_store_si512(t + 16 * g, _mm512_permutex2var_epi32(low, _mm512_loadu_si512(from + 16 * g), high));
#else
  for (unsigned l = 0; l < kWarp; ++l) t[l] = a[from[l]];
#endif
  if (lanes == kFullMask) std::memcpy(d, t, sizeof t);
  else blend(d, t, lanes);
}

// The lanes whose segment is not of a width that is a power of two.
Mask odd_widths(const u32* c, Mask lanes) {
  static constexpr u32 kSegments = 1u << 0 | 1u << 16 | 1u << 24 | 1u << 28 | 1u << 30 | 1u << 31;
  Mask odd = 0;
  for_lanes(lanes, [&](unsigned l) { odd |= (~(kSegments >> (c[l] >> 8 & 31)) & 1) << l; });
  return odd;
}

template <Shuffle M, bool Fixed>
const Inst* shfl(const Inst& i, Warp& w, Mask mask) {
  const Meeting m = meet(i, w, mask, i.e, Collective::shuffle, bring_word);
  if (!m.ready) return m.next;
  alignas(64) u32 room[kWarp], computed[kWarp];
  const u32* a = values(m, w.at<const u32>(i.a), room);
  const u32* from = computed;
  Mask inside;
  if constexpr (Fixed) {
    const auto& fixed = *static_cast<const FixedShuffle*>(i.data);
    from = fixed.from, inside = fixed.inside;
  } else {
    inside = sources(M, w.at<const u32>(i.b), w.at<const u32>(i.c), computed);
    if (i.imm != 0) {
      const u32* c = w.at<const u32>(i.c);
      if (const Mask odd = odd_widths(c, m.lanes); odd != 0) {
        const u32 width = 32 - (c[std::countr_zero(odd)] >> 8 & 31);
        report_fault(i, w, odd, Fault::shuffle_width, "a width of " + std::to_string(width) + " lanes");
      }
    }
  }
  if (w.follows) [[unlikely]]
    shuffled_undefined(i, w, m, from, Fixed);
  Mask absent = 0;  // lanes that read one outside the collective
  if (m.present != kFullMask)
    for_lanes(m.lanes, [&](unsigned l) { absent |= Mask{(m.present >> from[l] & 1) == 0} << l; });
  permute(w.at<u32>(i.d), a, from, m.lanes);
  if (i.extra != 0) set_predicate(w, i.extra, inside, m.lanes);
  return absent == 0 ? &i + 1 : shuffled_absent(i, w, absent);
}

void shfl_decode(Decoder& d) {
  if (!d.accept("sync")) d.fail("needs .sync");
  const int mode = d.accept_one({"up", "down", "bfly", "idx"});
  if (mode < 0) d.fail("needs .up, .down, .bfly or .idx");
  d.type({Type::b32});
  d.end(5);
  const auto& o = d.operand(0);
  const bool pair = o.kind == Operand::list;
  const Slot r = d.destination(pair ? o.parts[0] : o, Type::b32);
  const Slot p = pair ? d.predicate_destination(o.parts[1]) : 0;
  const Slot a = d.source(1, Type::b32), b = d.source(2, Type::b32), c = d.source(3, Type::b32),
             e = d.source(4, Type::b32);
  bool known = false;  // the width is right
  if (d.is_immediate(3)) {
    const u32 segment = d.immediate(3);
    known = odd_widths(&segment, 1) == 0;
  }
  const bool fixed = d.is_immediate(2) && known;
  static constexpr Handler kFixed[] = {shfl<Shuffle::up, true>, shfl<Shuffle::down, true>, shfl<Shuffle::bfly, true>,
                                       shfl<Shuffle::idx, true>};
  static constexpr Handler kFree[] = {shfl<Shuffle::up, false>, shfl<Shuffle::down, false>, shfl<Shuffle::bfly, false>,
                                      shfl<Shuffle::idx, false>};
  const void* data = nullptr;
  if (fixed) {
    u32 by[kWarp], segment[kWarp];
    std::fill(by, by + kWarp, d.immediate(2));
    std::fill(segment, segment + kWarp, d.immediate(3));
    FixedShuffle table;
    table.inside = sources(static_cast<Shuffle>(mode), by, segment, table.from);
    data = d.keep_value(table);
  }
  Inst& i = d.emit(fixed ? kFixed[mode] : kFree[mode]);
  i.a = a, i.b = b, i.c = c, i.d = r, i.e = e, i.extra = p;
  if (fixed) i.data = data;
  i.imm = known ? 0 : 1;
}

// ---- vote --------------------------------------------------------------------------------------------------------

template <Vote V>
const Inst* vote(const Inst& i, Warp& w, Mask mask) {
  const Meeting m = meet(i, w, mask, i.e, Collective::vote, bring_predicate);
  if (!m.ready) return m.next;
  Mask p = w.predicate(i.a) ^ static_cast<Mask>(i.imm);
  if (m.staged != nullptr)
    for_lanes(m.present & ~m.lanes,
              [&](unsigned l) { p = (p & ~(Mask{1} << l)) | static_cast<Mask>(m.staged[l]) << l; });
  p &= m.present;
  if (w.follows) [[unlikely]]
    voted_undefined(i, w, m, V, p);
  if constexpr (V == Vote::ballot) {
    each_lane(w.at<u32>(i.d), m.lanes, [=](unsigned) { return p; });
  } else {
    const bool v = V == Vote::all ? p == m.present : V == Vote::any ? p != 0 : p == 0 || p == m.present;
    set_predicate(w, i.d, v ? kFullMask : 0, m.lanes);
  }
  return &i + 1;
}
void vote_decode(Decoder& d) {
  if (!d.accept("sync")) d.fail("needs .sync");
  const int mode = d.accept_one({"all", "any", "uni", "ballot"});
  if (mode < 0) d.fail("needs .all, .any, .uni or .ballot");
  d.type({mode == 3 ? Type::b32 : Type::pred});
  d.end(3);
  const Slot r = mode == 3 ? d.destination(0, Type::b32) : d.predicate_destination(d.operand(0));
  Operand p = d.operand(1);
  const bool flip = p.negated;
  p.negated = false;
  const Slot a = d.predicate_source(p), e = d.source(2, Type::b32);
  static constexpr Handler kModes[] = {vote<Vote::all>, vote<Vote::any>, vote<Vote::uni>, vote<Vote::ballot>};
  Inst& i = d.emit(kModes[mode]);
  i.a = a, i.d = r, i.e = e, i.imm = flip ? -1 : 0;
}

// ---- match -------------------------------------------------------------------------------------------------------

template <class T, bool All>
const Inst* match(const Inst& i, Warp& w, Mask mask) {
  const Meeting m = meet(i, w, mask, i.e, Collective::match, sizeof(T) == 8 ? bring_double_word : bring_word);
  if (!m.ready) return m.next;
  T room[kWarp];
  const T* a = values(m, w.at<const T>(i.a), room);
  if (w.follows) [[unlikely]]
    joined_undefined(i, w, m, false);
  u32 result[kWarp] = {};
  for_lanes(m.lanes,
            [&](unsigned l) { for_lanes(m.present, [&](unsigned k) { result[l] |= Mask{a[k] == a[l]} << k; }); });
  if constexpr (All) {
    const bool same = result[std::countr_zero(m.lanes)] == m.present;
    for_lanes(m.lanes, [&](unsigned l) { w.at<u32>(i.d)[l] = same ? m.present : 0; });
    if (i.extra != 0) set_predicate(w, i.extra, same ? kFullMask : 0, m.lanes);
  } else {
    for_lanes(m.lanes, [&](unsigned l) { w.at<u32>(i.d)[l] = result[l]; });
  }
  return &i + 1;
}
void match_decode(Decoder& d) {
  const int mode = d.accept_one({"any", "all"});
  if (!d.accept("sync") || mode < 0) d.fail("needs .any.sync or .all.sync");
  const Type t = d.type({Type::b32, Type::b64});
  d.end(3);
  const auto& o = d.operand(0);
  const bool pair = o.kind == Operand::list;
  const Slot r = d.destination(pair ? o.parts[0] : o, Type::b32), p = pair ? d.predicate_destination(o.parts[1]) : 0;
  const Slot a = d.source(1, t), e = d.source(2, Type::b32);
  Inst& i = d.emit(t == Type::b32 ? (mode == 0 ? match<u32, false> : match<u32, true>)
                                  : (mode == 0 ? match<u64, false> : match<u64, true>));
  i.a = a, i.d = r, i.e = e, i.extra = p;
}

// ---- redux -------------------------------------------------------------------------------------------------------

enum class Redux { add, min, max, and_, or_, xor_ };
template <Redux R, class T>
const Inst* redux(const Inst& i, Warp& w, Mask mask) {
  const Meeting m = meet(i, w, mask, i.e, Collective::reduce, bring_word);
  if (!m.ready) return m.next;
  T room[kWarp];
  const T* a = values(m, w.at<const T>(i.a), room);
  if (w.follows) [[unlikely]]
    joined_undefined(i, w, m, R == Redux::and_ || R == Redux::or_ || R == Redux::xor_);
  T v = a[std::countr_zero(m.present)];
  for_lanes(m.present & (m.present - 1), [&](unsigned l) {
    switch (R) {
      case Redux::add: v = static_cast<T>(static_cast<u32>(v) + static_cast<u32>(a[l])); break;
      case Redux::min: v = std::min(v, a[l]); break;
      case Redux::max: v = std::max(v, a[l]); break;
      case Redux::and_: v = v & a[l]; break;
      case Redux::or_: v = v | a[l]; break;
      case Redux::xor_: v = v ^ a[l]; break;
    }
  });
  each_lane(w.at<T>(i.d), m.lanes, [=](unsigned) { return v; });
  return &i + 1;
}
void redux_decode(Decoder& d) {
  if (!d.accept("sync")) d.fail("needs .sync");
  const int op = d.accept_one({"add", "min", "max", "and", "or", "xor"});
  if (op < 0) d.fail("needs an operation");
  const Type t = op < 3 ? d.type({Type::u32, Type::s32}) : d.type({Type::b32});
  d.end(3);
  const Slot r = d.destination(0, t), a = d.source(1, t), e = d.source(2, Type::b32);
  const bool sign = t == Type::s32;
  const Handler h = op == 0   ? redux<Redux::add, u32>
                    : op == 1 ? (sign ? redux<Redux::min, s32> : redux<Redux::min, u32>)
                    : op == 2 ? (sign ? redux<Redux::max, s32> : redux<Redux::max, u32>)
                    : op == 3 ? redux<Redux::and_, u32>
                    : op == 4 ? redux<Redux::or_, u32>
                              : redux<Redux::xor_, u32>;
  Inst& i = d.emit(h);
  i.a = a, i.d = r, i.e = e;
}

// ---- elect, activemask, syncwarp ---------------------------------------------------------------------------------

const Inst* elect(const Inst& i, Warp& w, Mask mask) {
  const Meeting m = meet(i, w, mask, i.e, Collective::elect, nullptr);
  if (!m.ready) return m.next;
  const u32 leader = static_cast<u32>(std::countr_zero(m.present));
  each_lane(w.at<u32>(i.d), m.lanes, [=](unsigned) { return leader; });
  set_predicate(w, i.extra, Mask{1} << leader, m.lanes);
  return &i + 1;
}
void elect_decode(Decoder& d) {
  if (!d.accept("sync")) d.fail("needs .sync");
  d.end(2);
  const auto& o = d.operand(0);
  if (o.kind != Operand::list || !o.piped) d.fail("needs d|p");
  const Slot r = d.destination(o.parts[0], Type::b32), p = d.predicate_destination(o.parts[1]),
             e = d.source(1, Type::b32);
  Inst& i = d.emit(elect);
  i.d = r, i.e = e, i.extra = p;
}

const Inst* activemask(const Inst& i, Warp& w, Mask mask) {
  const Mask lanes = mask & w.active;
  each_lane(w.at<u32>(i.d), lanes, [=](unsigned) { return lanes; });
  return &i + 1;
}
void activemask_decode(Decoder& d) {
  d.type({Type::b32});
  d.end(1);
  const Slot r = d.destination(0, Type::b32);
  d.emit(activemask).d = r;
}

const Inst* syncwarp(const Inst& i, Warp& w, Mask mask) {
  const Meeting m = meet(i, w, mask, i.e, Collective::syncwarp, nullptr);
  return m.ready ? &i + 1 : m.next;
}

}  // namespace

void decode_syncwarp(Decoder& d) {
  if (!d.accept("sync")) d.fail("needs .sync");
  d.end(1);
  const Slot e = d.source(0, Type::b32);
  d.emit(syncwarp).e = e;
  d.ends_block();
}

std::span<const Opcode> collective_opcodes() {
  static constexpr auto k = InstructionClass::shuffle;
  static const Opcode table[] = {{"shfl", shfl_decode, k},   {"vote", vote_decode, k},
                                 {"match", match_decode, k}, {"redux", redux_decode, k},
                                 {"elect", elect_decode, k}, {"activemask", activemask_decode, k}};
  return table;
}

}  // namespace machine
