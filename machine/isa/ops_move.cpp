// Moves: mov with packing and special registers, cvta, isspacep.
#include <chrono>

#include "exec/lanes.hpp"
#include "isa/families.hpp"

namespace machine {
namespace {

using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;

template <class T>
const Inst* move(const Inst& i, Warp& w, Mask mask) {
  const T* a = w.at<const T>(i.a);
  T* d = w.at<T>(i.d);
  if (mask == kFullMask) std::memmove(d, a, sizeof(T) * kWarp);
  else blend(d, a, mask);
  return &i + 1;
}
const Inst* move_predicate(const Inst& i, Warp& w, Mask mask) {
  set_predicate(w, i.d, w.predicate(i.a), mask);
  return &i + 1;
}

// {a, b, ...} -> d, each part P, the whole W
template <class W, class P>
const Inst* pack(const Inst& i, Warp& w, Mask mask) {
  constexpr unsigned parts = sizeof(W) / sizeof(P);
  const P* from[parts];
  for (unsigned k = 0; k < parts; ++k) from[k] = w.at<const P>(i.slots[k]);
  each_lane(w.at<W>(i.d), mask, [=](unsigned l) {
    W r = 0;
    for (unsigned k = 0; k < parts; ++k) r |= static_cast<W>(from[k][l]) << (8 * sizeof(P) * k);
    return r;
  });
  return &i + 1;
}
// Each part may be wider than its share when it is an 8-bit register in a 16-bit slot.
template <class W, class P>
const Inst* unpack(const Inst& i, Warp& w, Mask mask) {
  constexpr unsigned parts = sizeof(W) / sizeof(P);
  alignas(64) W whole[kWarp];
  std::memcpy(whole, w.at<const W>(i.a), sizeof whole);
  for (unsigned k = 0; k < parts; ++k)
    each_lane(w.at<P>(i.slots[k]), mask, [&](unsigned l) { return static_cast<P>(whole[l] >> (8 * sizeof(P) * k)); });
  return &i + 1;
}
const Inst* pack_bytes(const Inst& i, Warp& w, Mask mask) {
  const unsigned parts = i.extra;
  for_lanes(mask, [&](unsigned l) {
    u32 r = 0;
    for (unsigned k = 0; k < parts; ++k) r |= static_cast<u32>(w.at<const u16>(i.slots[k])[l] & 0xff) << (8 * k);
    if (parts == 2) w.at<u16>(i.d)[l] = static_cast<u16>(r);
    else w.at<u32>(i.d)[l] = r;
  });
  return &i + 1;
}
const Inst* unpack_bytes(const Inst& i, Warp& w, Mask mask) {
  const unsigned parts = i.extra;
  for_lanes(mask, [&](unsigned l) {
    const u32 v = parts == 2 ? w.at<const u16>(i.a)[l] : w.at<const u32>(i.a)[l];
    for (unsigned k = 0; k < parts; ++k) w.at<u16>(i.slots[k])[l] = static_cast<u16>(v >> (8 * k) & 0xff);
  });
  return &i + 1;
}

template <class T>
const Inst* local_address(const Inst& i, Warp& w, Mask mask) {
  const T value = static_cast<T>(w.frame->base + static_cast<u64>(i.imm));
  each_lane(w.at<T>(i.d), mask, [=](unsigned) { return value; });
  return &i + 1;
}
const Inst* param_address(const Inst& i, Warp& w, Mask mask) {
  const u64 value = reinterpret_cast<u64>(w.worker->params) + static_cast<u64>(i.imm);
  each_lane(w.at<u64>(i.d), mask, [=](unsigned) { return value; });
  return &i + 1;
}

// Clocks: one tick a warp instruction, so that they are repeatable; the global timer counts them as nanoseconds.
template <class T, unsigned Shift>
const Inst* clock(const Inst& i, Warp& w, Mask mask) {
  Worker& k = *w.worker;
  k.clock += 16;  // also distinguishes a wait with a time limit from one without an end
  const T value = static_cast<T>(((k.executed + k.clock) >> Shift));
  each_lane(w.at<T>(i.d), mask, [=](unsigned) { return value; });
  return &i + 1;
}

void mov_parts(Decoder& d, Type t, bool packing) {
  const auto& list = d.operand(packing ? 1 : 0);
  const unsigned bytes = bytes_of(t), parts = static_cast<unsigned>(list.parts.size());
  if (parts == 0 || bytes % parts != 0 || (parts != 2 && parts != 4))
    d.fail("the parts do not make up '." + std::string(name_of(t)) + "'");
  const unsigned part = bytes / parts;
  const Type part_type = part == 1 ? Type::b8 : part == 2 ? Type::b16 : part == 4 ? Type::b32 : Type::none;
  if (part_type == Type::none) d.refuse_type(t);
  std::vector<Slot> slots;
  for (const auto& p : list.parts) {
    slots.push_back(packing ? d.source(p, part_type) : d.destination(p, part_type));
  }
  const Slot whole = packing ? d.destination(0, t) : d.source(1, t);
  Handler h = nullptr;
  if (part == 1) h = bytes > 4 ? nullptr : packing ? pack_bytes : unpack_bytes;
  else if (bytes == 4) h = packing ? pack<u32, u16> : unpack<u32, u16>;
  else if (parts == 2) h = packing ? pack<u64, u32> : unpack<u64, u32>;
  else h = packing ? pack<u64, u16> : unpack<u64, u16>;
  if (h == nullptr) d.fail("these parts are not supported");
  const Slot* kept = d.keep_slots(std::move(slots));
  Inst& i = d.emit(h);
  (packing ? i.d : i.a) = whole;
  i.slots = kept;
  i.extra = parts;
}

const Inst* move_wide(const Inst& i, Warp& w, Mask mask) {
  alignas(64) u64 upper[kWarp];  // the lower half may be written where the upper one is read
  std::memcpy(upper, w.at<const u64>(i.b), sizeof upper);
  const u64* lower = w.at<const u64>(i.a);
  each_lane(w.at<u64>(i.slots[0]), mask, [=](unsigned l) { return lower[l]; });
  blend(w.at<u64>(i.slots[1]), upper, mask);
  return &i + 1;
}

const Inst* move_grid_id(const Inst& i, Warp& w, Mask mask) {
  const u32* a = w.at<const u32>(i.a);
  each_lane(w.at<u64>(i.d), mask, [=](unsigned l) { return u64{a[l]}; });
  return &i + 1;
}

// .b128: a pair of 64-bit registers to another.
void mov_wide(Decoder& d) {
  const auto parts = [&](std::size_t index) -> std::array<Operand, 2> {
    const Operand& o = d.operand(index);
    if (o.kind != Operand::list) return d.halves(o);
    if (o.parts.size() != 2 || o.piped) d.fail("needs two registers of 64 bits");
    return {o.parts[0], o.parts[1]};
  };
  const auto from = parts(1), to = parts(0);
  const Slot low = d.source(from[0], Type::b64), high = d.source(from[1], Type::b64);
  const Slot* slots = d.keep_slots({d.destination(to[0], Type::b64), d.destination(to[1], Type::b64)});
  Inst& i = d.emit(move_wide);
  i.a = low, i.b = high, i.slots = slots;
}

// A clock: the handler that reads it, and its width in bytes; null where `name` is none.
std::pair<Handler, unsigned> clock_named(std::string_view name) {
  if (name == "%clock" || name == "%clock_lo" || name == "%globaltimer_lo") return {clock<u32, 0>, 4};
  if (name == "%clock_hi" || name == "%globaltimer_hi") return {clock<u32, 32>, 4};
  if (name == "%clock64" || name == "%globaltimer") return {clock<u64, 0>, 8};
  return {nullptr, 0};
}

// The source is a name that no slot stands for: a clock, the grid's number, or the address of a local variable or of a
// parameter. False: it is none of them.
bool mov_named(Decoder& d, Type t) {
  const auto& from = d.operand(1);
  const unsigned bytes = bytes_of(t);
  if (const auto [handler, width] = clock_named(from.text); handler != nullptr) {
    if (bytes != width) d.fail("wrong width for '" + std::string(from.text) + "'");
    const Slot r = d.destination(0, t);
    d.emit(handler).d = r;
    return true;
  }
  if (from.text == "%gridid" && bytes == 8) {
    const Slot r = d.destination(0, t);
    Inst& i = d.emit(move_grid_id);
    i.a = d.special(Special::gridid), i.d = r;
    return true;
  }
  const Variable* v = d.find(from.text);
  if (v == nullptr || (v->kind != Variable::local && v->kind != Variable::kernel_param)) return false;
  const bool local = v->kind == Variable::local;
  if (local ? bytes < 4 : bytes != 8) d.refuse_type(t);
  const std::int64_t address = static_cast<std::int64_t>(v->address) + from.offset;
  const Slot r = d.destination(0, t);
  Inst& i = d.emit(!local ? param_address : bytes == 4 ? local_address<u32> : local_address<u64>);
  i.d = r;
  i.imm = address;
  return true;
}

void mov(Decoder& d) {
  const Type t = d.type();
  d.end(2);
  if (t == Type::b128) return mov_wide(d);
  if (t == Type::pred) {
    const Slot a = d.predicate_source(d.operand(1)), r = d.predicate_destination(d.operand(0));
    Inst& i = d.emit(move_predicate);
    i.a = a, i.d = r;
    return;
  }
  if (d.operand(1).kind == Operand::list) return mov_parts(d, t, true);
  if (d.operand(0).kind == Operand::list) return mov_parts(d, t, false);
  const unsigned bytes = bytes_of(t);
  if (bytes != 2 && bytes != 4 && bytes != 8) d.refuse_type(t);
  if (d.operand(1).kind == Operand::name && mov_named(d, t)) return;
  if (d.alias(1, t)) return;
  const Slot a = d.source(1, t), r = d.destination(0, t);
  Inst& i = d.emit(bytes == 2 ? move<u16> : bytes == 4 ? move<u32> : move<u64>);
  i.a = a, i.d = r;
}

// ---- address spaces ----------------------------------------------------------------------------------------------

template <std::int64_t Sign>
const Inst* shift_window(const Inst& i, Warp& w, Mask mask) {
  const u64* a = w.at<const u64>(i.a);
  const u64 by = static_cast<u64>(i.imm) * static_cast<u64>(Sign);
  each_lane(w.at<u64>(i.d), mask, [=](unsigned l) { return a[l] + by; });
  return &i + 1;
}

int space_of(Decoder& d) {
  if (d.accept("shared::cta") || d.accept("shared::cluster")) return 1;
  const int s = d.accept_one({"global", "shared", "local", "const", "param"});
  if (s < 0) d.fail("needs a state space");
  d.accept("entry");
  return s;
}

void cvta(Decoder& d) {
  const bool to = d.accept("to");
  const int s = space_of(d);
  const Type t = d.type({Type::u64, Type::u32});
  if (t == Type::u32) d.fail("32-bit addresses are not supported");
  d.end(2);
  const std::uint64_t window = s == 1 ? kSharedWindow : s == 2 ? kLocalWindow : 0;
  const auto& from = d.operand(1);
  Variable* v = from.kind == Operand::name ? d.find(from.text) : nullptr;
  if (window == 0 && d.alias(1, t)) return;
  const Slot r = d.destination(0, t);
  if (v != nullptr && v->kind == Variable::kernel_param) {
    Inst& i = d.emit(param_address);
    i.d = r;
    i.imm = static_cast<std::int64_t>(v->address) + from.offset;
    return;
  }
  if (v != nullptr && v->kind == Variable::local) {
    Inst& i = d.emit(local_address<u64>);
    i.d = r;
    i.imm = static_cast<std::int64_t>(v->address + window) + from.offset;
    return;
  }
  const Slot a = d.source(1, t);
  Inst& i = d.emit(window == 0 ? move<u64> : to ? shift_window<-1> : shift_window<1>);
  i.a = a, i.d = r, i.imm = static_cast<std::int64_t>(window);
}

template <class Test>
Mask lanes_where(const u64* a, Test test) {
  return mask_of([=](unsigned l) { return test(a[l]); });
}
const Inst* isspacep(const Inst& i, Warp& w, Mask mask) {
  const u64* a = w.at<const u64>(i.a);
  const Mask shared = lanes_where(a, [](u64 v) { return v - kSharedWindow < kWindowBytes; });
  const Mask local = lanes_where(a, [](u64 v) { return v - kLocalWindow < kWindowBytes; });
  Mask constant = 0;
  if (i.extra >= 3)
    for_lanes(mask, [&](unsigned l) {
      const Object* o = AddressSpace::instance().find(a[l]);
      if (o != nullptr && o->kind == (i.extra == 3 ? ObjectKind::constant_symbol : ObjectKind::param))
        constant |= Mask{1} << l;
    });
  set_predicate(w, i.d,
                i.extra == 0   ? ~(shared | local)
                : i.extra == 1 ? shared
                : i.extra == 2 ? local
                               : constant,
                mask);
  return &i + 1;
}
void isspacep_decode(Decoder& d) {
  const int s = space_of(d);
  d.end(2);
  const Slot a = d.source(1, Type::b64), r = d.predicate_destination(d.operand(0));
  Inst& i = d.emit(isspacep);
  i.a = a, i.d = r, i.extra = static_cast<u32>(s);
}

// mapa without clusters: the only block of its cluster, which is of rank 0.
template <class T>
const Inst* own_rank(const Inst& i, Warp& w, Mask mask) {
  const Mask lanes = mask & w.active;
  const u32* rank = w.at<const u32>(i.b);
  if (const Mask others = lanes & mask_of([=](unsigned l) { return rank[l] != 0; }); others != 0) {
    abort_launch(w, i, LaunchStatus::unsupported,
                 "mapa names a block that the cluster does not have: clusters of more than one block are not supported",
                 others);
    return nullptr;
  }
  return move<T>(i, w, mask);
}
void mapa(Decoder& d) {
  const bool shared = d.accept("shared::cluster");
  const Type t = d.type({Type::u32, Type::u64});
  d.end(3);
  const Slot a = d.source(1, t), r = d.destination(0, t), rank = d.source(2, Type::b32);
  (void)shared;
  Inst& i = d.emit(t == Type::u32 ? own_rank<u32> : own_rank<u64>);
  i.a = a, i.b = rank, i.d = r;
}

// The rank of the block whose shared memory an address lies in.
void getctarank(Decoder& d) {
  d.accept("shared::cluster");
  const Type t = d.type({Type::u32, Type::u64});
  d.end(2);
  d.source(1, t);
  const Slot r = d.destination(0, Type::b32);
  Inst& i = d.emit(move<u32>);
  i.a = d.special(Special::zero), i.d = r;
}

}  // namespace

std::span<const Opcode> move_opcodes() {
  static constexpr auto k = InstructionClass::move;
  static const Opcode table[] = {{"mov", mov, k},
                                 {"cvta", cvta, k},
                                 {"isspacep", isspacep_decode, k},
                                 {"mapa", mapa, k},
                                 {"getctarank", getctarank, k}};
  return table;
}

}  // namespace machine
