// wmma: matrices of a whole warp between memory and registers, and their products.
//
// PTX leaves open where a fragment's elements lie; here they lie as those of mma do, tile behind tile. A load or store
// forms the addresses of each register for all lanes at once, where the lanes meet, and is an ordinary load or store
// from there on.
#include <algorithm>
#include <cstring>

#include "exec/fault.hpp"
#include "exec/undefined.hpp"
#include "isa/families.hpp"
#include "isa/matrix.hpp"
#include "isa/matrix_product.hpp"
#include "isa/memory_decode.hpp"

namespace machine {
namespace {

using u8 = std::uint8_t;
using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;

struct Shape3 {
  std::string_view name;
  unsigned m, n, k;
};
constexpr Shape3 kShapes[] = {{"m16n16k16", 16, 16, 16}, {"m32n8k16", 32, 8, 16}, {"m8n32k16", 8, 32, 16},
                              {"m16n16k8", 16, 16, 8},   {"m8n8k4", 8, 8, 4},     {"m8n8k32", 8, 8, 32},
                              {"m8n8k128", 8, 8, 128}};

Shape3 shape(Decoder& d) {
  for (const auto& s : kShapes)
    if (d.accept(s.name)) return s;
  d.fail("needs a shape of wmma");
}
bool by_columns(Decoder& d) {
  const auto layout = d.next();
  if (layout != "row" && layout != "col") d.fail("needs .row or .col");
  d.accept(layout);
  return layout == "col";
}

bool is_operand(const Shape3& s, Type t) {
  switch (t) {
    case Type::f16:
    case Type::bf16:
    case Type::s8:
    case Type::u8: return s.k == 16;
    case Type::tf32: return s.k == 8;
    case Type::f64: return s.k == 4;
    case Type::s4:
    case Type::u4: return s.k == 32;
    case Type::b1: return s.k == 128;
    default: return false;
  }
}
bool is_sum(const Shape3& s, Type t) {
  switch (t) {
    case Type::f16: return s.k == 16;
    case Type::f32: return s.k == 16 || s.k == 8;
    case Type::s32: return s.k == 16 || s.k >= 32;
    default: return t == Type::f64 && s.k == 4;
  }
}

MatrixFragment fragment(const Shape3& s, Role role, Type t) {
  MatrixFragment f;
  f.role = role;
  f.mirrored = s.n == 32;  // the hardware computes this product transposed
  f.bits = static_cast<u8>(bits_of_type(t));
  f.rows = static_cast<u16>(role == Role::b ? s.k : s.m);
  f.columns = static_cast<u16>(role == Role::a ? s.k : s.n);
  // Fragments of halves have the same size in every shape; what is more than the matrix repeats it.
  f.registers = static_cast<u8>(
      role != Role::c && t == Type::f16 ? 8 : f.rows * f.columns * f.bits / 32 / (t == Type::f64 ? 64 : 32));
  return f;
}

// ---- addresses ---------------------------------------------------------------------------------------------------

// Slots: the stride in elements, then the addresses of each access.
struct Placement {
  MatrixFragment fragment;
  bool columns = false;  // in memory, columns are contiguous
  bool halves = false;   // each part of a register is an access of its own
  std::uint8_t base_width = 8;
  bool stored = false;
};

unsigned accesses(const Placement& p) { return p.fragment.registers * (p.halves ? p.fragment.per() : 1); }

const Inst* place(const Inst& i, Warp& w, Mask mask) {
  const Placement& p = *reinterpret_cast<const Placement*>(i.imm);
  const Meeting m = meet(i, w, mask, i.e, p.stored ? Collective::matrix_store : Collective::matrix_load, nullptr);
  if (!m.ready) return m.next;
  if (m.present != kFullMask)
    report_fault(i, w, m.present, Fault::divergent_barrier, "a matrix instruction needs all 32 lanes");
  const Slot stride_slot = i.slots[0];
  if (w.follows) [[unlikely]] {
    require_defined(i, w, i.a, m.lanes, UndefinedUse::address);
    require_defined(i, w, stride_slot, m.lanes, UndefinedUse::address);
  }
  const u32* stride = w.at<const u32>(stride_slot);
  const unsigned per = p.halves ? p.fragment.per() : 1;
  for (unsigned k = 0; k < accesses(p); ++k) {
    u64* to = w.at<u64>(i.slots[1 + k]);
    for_lanes(m.lanes, [&](unsigned l) {
      const u64 base = p.base_width == 8 ? w.at<const u64>(i.a)[l] : w.at<const u32>(i.a)[l];
      const Element e = element_of(p.fragment, l, k / per, k % per);
      const u64 element = p.columns ? u64{e.column} * stride[l] + e.row : u64{e.row} * stride[l] + e.column;
      to[l] = base + element * p.fragment.bits / 8;
    });
  }
  return &i + 1;
}

// Parts of 8 or 16 bits to a register, and back: the slot list is the parts', the register's slot in d or a.
template <class P>
const Inst* join(const Inst& i, Warp& w, Mask mask) {
  constexpr unsigned parts = 4 / sizeof(P);
  mask &= w.active;
  u32* d = w.at<u32>(i.d);
  for_lanes(mask, [&](unsigned l) {
    u32 v = 0;
    for (unsigned k = 0; k < parts; ++k)
      v |= u32{static_cast<P>(w.at<const u16>(i.slots[k])[l])} << (8 * sizeof(P) * k);
    d[l] = v;
    if (!w.follows) [[likely]]
      return;
    u64 bits = 0;
    Origin origin{};
    for (unsigned k = 0; k < parts; ++k)
      if (const UndefinedSlot* u = undefined_of(w, i.slots[k]); u != nullptr && (u->lanes >> l & 1) != 0)
        bits |= (u->bits[l] & static_cast<P>(~P{0})) << (8 * sizeof(P) * k), origin = u->origins[l];
    set_undefined(*w.frame, i.d, l, bits, origin);
  });
  return &i + 1;
}
template <class P>
const Inst* split(const Inst& i, Warp& w, Mask mask) {
  constexpr unsigned parts = 4 / sizeof(P);
  mask &= w.active;
  const u32* a = w.at<const u32>(i.a);
  for (unsigned k = 0; k < parts; ++k) {
    u16* d = w.at<u16>(i.slots[k]);
    for_lanes(mask, [&](unsigned l) { d[l] = static_cast<P>(a[l] >> (8 * sizeof(P) * k)); });
    if (!w.follows) [[likely]]
      continue;
    const UndefinedSlot* u = undefined_of(w, i.a);
    for_lanes(mask, [&](unsigned l) {
      const u64 bits =
          u != nullptr && (u->lanes >> l & 1) != 0 ? u->bits[l] >> (8 * sizeof(P) * k) & static_cast<P>(~P{0}) : 0;
      set_undefined(*w.frame, i.slots[k], l, bits, bits != 0 ? u->origins[l] : Origin{});
    });
  }
  return &i + 1;
}

// ---- loads and stores --------------------------------------------------------------------------------------------

void emit_parts(Decoder& d, const MemoryOp& op, Slot reg, const Slot* addresses, std::int64_t offset, unsigned parts) {
  const bool store = op.kind == AccessKind::store, bytes = parts == 4;
  std::vector<Slot> places;
  for (unsigned k = 0; k < parts; ++k) places.push_back(d.passing(2));
  const Slot* kept = d.keep_slots(places);
  if (store) {
    Inst& i = d.emit(bytes ? split<u8> : split<u16>);
    i.a = reg, i.slots = kept;
  }
  for (unsigned k = 0; k < parts; ++k) {
    MemoryOp part = op;
    part.registers[0] = places[k];
    part.element = static_cast<u8>(bytes ? 1 : 2), part.register_width = 2, part.width = part.element;
    prepare_element(d, part, bytes ? Type::u8 : Type::u16);
    emit_access(d, part, addresses[k], offset);
  }
  if (!store) {
    Inst& i = d.emit(bytes ? join<u8> : join<u16>);
    i.d = reg, i.slots = kept;
  }
}

void load_or_store(Decoder& d, bool store) {
  if (!d.accept("sync") || !d.accept("aligned")) d.fail("needs .sync.aligned");
  const int operand = store ? (d.accept("d") ? 2 : -1) : d.accept_one({"a", "b", "c"});
  if (operand < 0) d.fail("needs the matrix: a, b, c or d");
  const Role role = static_cast<Role>(operand);
  const Shape3 s = shape(d);
  Placement p;
  p.columns = by_columns(d);
  p.stored = store;
  MemoryOp op;
  op.kind = store ? AccessKind::store : AccessKind::load;
  op.via = d.accept("global")                              ? Via::global
           : d.accept("shared") || d.accept("shared::cta") ? Via::shared
                                                           : Via::generic;
  const Type t = d.type();
  if (!(role == Role::c ? is_sum(s, t) : is_operand(s, t))) d.fail("this combination of shape and type does not exist");
  if (bits_of_type(t) < 8 && p.columns != (role == Role::b)) d.fail("only A by rows and B by columns exist");
  d.end(2, 3);
  p.fragment = fragment(s, role, t);
  const bool along_rows = p.fragment.mirrored && role == Role::c
                              ? false
                              : role != Role::b;  // the parts of a register are neighbours in a row
  p.halves = p.fragment.bits >= 8 && p.fragment.per() > 1 && along_rows == p.columns;

  const Operand& list = d.operand(store ? 1 : 0);
  const std::vector<Operand> parts = list.kind == Operand::list ? list.parts : std::vector<Operand>{list};
  if (parts.size() != p.fragment.registers) d.fail("needs " + std::to_string(p.fragment.registers) + " registers");
  const Type whole = p.fragment.bits == 64 ? Type::b64 : Type::b32;
  std::vector<Slot> registers;
  for (const auto& part : parts) registers.push_back(store ? d.source(part, whole) : d.destination(part, whole));
  const auto address = d.address(store ? 0 : 1);
  check_named_space(d, address, op.via);
  if (op.via == Via::local || op.via == Via::constant) d.fail("not in this state space");
  p.base_width = static_cast<u8>(address.width);
  const u32 usual = p.columns ? p.fragment.rows : p.fragment.columns;
  std::vector<Slot> slots = {d.count() == 3 ? d.source(2, Type::b32) : d.constant(&usual, 4)};
  for (unsigned k = 0; k < accesses(p); ++k) slots.push_back(d.passing(8));
  const Slot* kept = d.keep_slots(slots);
  const u32 full = kFullMask;
  const Slot members = d.constant(&full, 4);
  const void* data = d.keep_value(p);
  Inst& i = d.emit(place);
  i.a = address.base, i.e = members, i.slots = kept, i.imm = reinterpret_cast<std::int64_t>(data);

  op.base_width = 8;
  op.element = op.register_width = static_cast<u8>(p.fragment.bits == 64 ? 8 : 4);
  op.width = op.element;
  const unsigned per = p.fragment.per();
  for (unsigned k = 0; k < p.fragment.registers; ++k) {
    if (p.halves) {
      emit_parts(d, op, registers[k], kept + 1 + std::size_t{k} * per, address.offset, per);
      continue;
    }
    op.registers[0] = registers[k];
    prepare_element(d, op, whole);
    emit_access(d, op, kept[1 + k], address.offset);
  }
  d.klass(InstructionClass::matrix);
}

// ---- products ----------------------------------------------------------------------------------------------------

void multiply(Decoder& d) {
  Product p;
  const int bits = d.accept_one({"and", "xor"});
  if (bits >= 0 && !d.accept("popc")) d.fail("needs .popc");
  if (bits >= 0) p.bits = bits == 0 ? Product::and_popc : Product::xor_popc;
  if (!d.accept("sync") || !d.accept("aligned")) d.fail("needs .sync.aligned");
  // How A and B lay in memory: the fragments are the same.
  const bool columns_a = by_columns(d), columns_b = by_columns(d);
  const Shape3 s = shape(d);
  const int rounding = d.accept_one({"rn", "rz", "rm", "rp"});
  if (rounding > 0) p.rounding = "nzmp"[rounding];
  p.saturate = d.accept("satfinite");
  p.m = s.m, p.n = s.n, p.k = s.k;
  p.d = d.type();
  const Type second = d.type();
  // Of halves, only the types of D and C are spelled.
  p.a = p.b = Type::f16, p.c = second;
  if (!d.next().empty()) p.a = second, p.b = d.type(), p.c = d.type();
  const bool bytes = (p.a == Type::s8 || p.a == Type::u8 || p.a == Type::s4 || p.a == Type::u4);
  bool good = is_operand(s, p.a) && p.a == p.b && is_sum(s, p.d) && is_sum(s, p.c);
  const bool same = p.d == p.c;
  switch (p.a) {
    case Type::f16: good &= (p.d == Type::f16 || p.d == Type::f32) && (p.c == Type::f16 || p.c == Type::f32); break;
    case Type::bf16:
    case Type::tf32: good &= p.d == Type::f32 && same; break;
    case Type::f64: good &= p.d == Type::f64 && same; break;
    default: good &= p.d == Type::s32 && same; break;
  }
  if (!good) d.fail("this combination of shape and types does not exist");
  if ((p.a == Type::b1) != (bits >= 0)) d.fail("bits need .and.popc or .xor.popc, other types take none");
  if (bits_of_type(p.a) < 8 && (columns_a || !columns_b)) d.fail("only .row.col exists");
  if (rounding >= 0 && p.a != Type::f64) d.fail("only f64 takes a rounding mode");
  if (p.saturate && !bytes && p.a != Type::f16) d.fail(".satfinite needs integers");
  p.fragment[0] = fragment(s, Role::c, p.d), p.fragment[3] = fragment(s, Role::c, p.c);
  p.fragment[1] = fragment(s, Role::a, p.a), p.fragment[2] = fragment(s, Role::b, p.b);
  if ((p.a == Type::f16 || p.a == Type::bf16) && p.d == Type::f32 && same) {
    const bool mirrored = p.fragment[0].mirrored;
    p.tiles_down = (mirrored ? s.n : s.m) / 16, p.tiles_across = (mirrored ? s.m : s.n) / 8;
  }
  emit_product(d, p);
}

void wmma(Decoder& d) {
  const int what = d.accept_one({"load", "store", "mma"});
  if (what < 0) d.fail("needs .load, .store or .mma");
  if (what == 2) return multiply(d);
  load_or_store(d, what == 1);
}

}  // namespace

std::span<const Opcode> wmma_opcodes() {
  static const Opcode table[] = {{"wmma", wmma, InstructionClass::matrix}};
  return table;
}

}  // namespace machine
