// mma.sync: D = A * B + C on fragments of one warp.
//
// Shapes m16n8k4/8/16/32 and m8n8k4/16 with f16, bf16, tf32, f64, e4m3, e5m2, s8 and u8 operands; the others are in
// matrix_product.cpp. Products are exact; a
// step of k is summed in double and rounded once to the accumulator (towards zero for f32, as tensor cores truncate),
// so results lie within the rounding of the hardware, whose order of summation is not documented. Integer results are
// exact.
#include <algorithm>
#include <cstring>

#include "exec/fault.hpp"
#include "exec/real.hpp"
#include "exec/undefined.hpp"
#include "isa/convert.hpp"
#include "isa/families.hpp"
#include "isa/format.hpp"
#include "isa/matrix.hpp"
#include "isa/matrix_product.hpp"

namespace machine {
namespace {

using u8 = std::uint8_t;
using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;
using s32 = std::int32_t;
using s64 = std::int64_t;

struct MmaOp {
  unsigned m = 16, n = 8, k = 16;
  Type d = Type::f32, a = Type::f16, b = Type::f16, c = Type::f32;
  bool saturate = false;
  unsigned counts[4] = {};  // registers of d, a, b, c
  unsigned starts[4] = {};  // where they begin in the slot list
};

// Where element (row, column) of an operand lies. A register holds 32 (f64: 64) bits; `packed` elements of it.
struct Place {
  unsigned lane, reg, part;
};
// A: rows x k. With e elements a register, a lane holds e * 4 consecutive columns in its quad, in blocks of 8 rows.
Place place_a(unsigned rows, unsigned per, unsigned row, unsigned column) {
  const unsigned quad = column / per % 4, half = column / (per * 4);  // block of columns
  const unsigned row_blocks = rows / 8;
  return {row % 8 * 4 + quad, row / 8 + half * row_blocks, column % per};
}
Place place_b(unsigned per, unsigned row, unsigned column) {  // k x n
  return {column * 4 + row / per % 4, row / (per * 4), row % per};
}
Place place_c(unsigned row, unsigned column, unsigned per) {  // rows x 8, two consecutive columns a lane
  const unsigned index = row / 8 * 2 + column % 2;
  return {row % 8 * 4 + column / 2, index / per, index % per};
}

u64 read_part(const Warp& w, const Slot* slots, const Place& p, unsigned bits) {
  if (bits == 64) return w.at<const u64>(slots[p.reg])[p.lane];
  const u32 v = w.at<const u32>(slots[p.reg])[p.lane];
  return bits == 32 ? v : v >> (bits * p.part) & ((1u << bits) - 1);
}

// Fragments of A and B to matrices: element `part` of register `reg` of each lane, converted.
template <class V, class A, class B>
void spread(const Warp& w, const Slot* a, const Slot* b, const MmaOp& op, unsigned per, unsigned bits,
            V (&to_a)[16][32], V (&to_b)[32][8], A convert_a, B convert_b) {
  const unsigned blocks = op.m / 8;
  const u32 mask = bits == 32 ? ~0u : (1u << bits) - 1;
  for (unsigned reg = 0; reg < op.counts[1]; ++reg) {
    const u32* v = w.at<const u32>(a[reg]);
    for (unsigned l = 0; l < kWarp; ++l)
      for (unsigned part = 0; part < per; ++part)
        to_a[group_of(l) + 8 * (reg % blocks)][quad_of(l) * per + part + reg / blocks * per * 4] =
            convert_a(v[l] >> (bits * part) & mask);
  }
  for (unsigned reg = 0; reg < op.counts[2]; ++reg) {
    const u32* v = w.at<const u32>(b[reg]);
    for (unsigned l = 0; l < kWarp; ++l)
      for (unsigned part = 0; part < per; ++part)
        to_b[quad_of(l) * per + part + reg * per * 4][group_of(l)] = convert_b(v[l] >> (bits * part) & mask);
  }
}

// Row r of A * B + C, its eight columns side by side.
void row_sums(const Warp& w, const Slot* c, const MmaOp& op, unsigned r, unsigned per, unsigned bits,
              const double (&a)[16][32], const double (&b)[32][8], double (&sums)[8]) {
  for (unsigned n = 0; n < 8; ++n) sums[n] = real_value(op.c, read_part(w, c, place_c(r, n, per), bits));
  if (op.d == Type::f64) {
    for (unsigned k = 0; k < op.k; ++k)
      for (unsigned n = 0; n < 8; ++n) sums[n] = __builtin_fma(a[r][k], b[k][n], sums[n]);
  } else {
    for (unsigned k = 0; k < op.k; ++k)
      for (unsigned n = 0; n < 8; ++n) sums[n] += a[r][k] * b[k][n];
  }
}

// An element of D needs its row of A, its column of B and its element of C.
void multiplied_undefined(Warp& w, const MmaOp& op, const Slot* slots, Mask lanes) {
  const auto of = [&](unsigned operand, unsigned reg) { return slots[op.starts[operand] + reg]; };
  bool any = false;
  for (unsigned operand = 1; operand < 4; ++operand)
    for (unsigned reg = 0; reg < op.counts[operand]; ++reg) any = any || undefined_lanes(w, of(operand, reg)) != 0;
  const unsigned bits_a = bits_of_type(op.a), bits_c = bits_of_type(op.c);
  const unsigned per = bits_a == 64 ? 1 : 32 / bits_a, per_c = bits_c == 16 ? 2 : 1;
  const auto ones = [](unsigned bits) { return bits >= 64 ? ~u64{0} : (u64{1} << bits) - 1; };
  const auto origin_of = [&](unsigned operand, const Place& p, unsigned bits) -> const Origin* {
    const UndefinedSlot* u = undefined_of(w, of(operand, p.reg));
    const bool open =
        u != nullptr && (u->lanes >> p.lane & 1) != 0 && (u->bits[p.lane] >> (bits * p.part) & ones(bits)) != 0;
    return open ? &u->origins[p.lane] : nullptr;
  };
  struct Result {
    u64 bits = 0;
    Origin origin;
  };
  std::vector<Result> results(any ? op.counts[0] * kWarp : 0);
  if (any) {
    const Origin *of_row[16] = {}, *of_column[8] = {};
    for (unsigned r = 0; r < op.m; ++r)
      for (unsigned k = 0; k < op.k && of_row[r] == nullptr; ++k)
        of_row[r] = origin_of(1, place_a(op.m, per, r, k), bits_a);
    for (unsigned n = 0; n < op.n; ++n)
      for (unsigned k = 0; k < op.k && of_column[n] == nullptr; ++k)
        of_column[n] = origin_of(2, place_b(per, k, n), bits_a);
    for (unsigned r = 0; r < op.m; ++r)
      for (unsigned n = 0; n < op.n; ++n) {
        const Place p = place_c(r, n, per_c);
        const Origin* origin = of_row[r] != nullptr      ? of_row[r]
                               : of_column[n] != nullptr ? of_column[n]
                                                         : origin_of(3, p, bits_c);
        if (origin == nullptr) continue;
        Result& result = results[p.reg * kWarp + p.lane];
        result.bits |= ones(bits_c) << (bits_c * p.part);
        result.origin = *origin;
        result.origin.computed = true;
      }
  }
  for (unsigned reg = 0; reg < op.counts[0]; ++reg) {
    set_defined(*w.frame, of(0, reg), lanes);
    if (any)
      for_lanes(lanes, [&](unsigned l) {
        set_undefined(*w.frame, of(0, reg), l, results[reg * kWarp + l].bits, results[reg * kWarp + l].origin);
      });
  }
}

// The elements of A and B, by row and column: as integers, or as doubles.
struct Factors {
  double a[16][32], b[32][8];
  s64 whole_a[16][32], whole_b[32][8];
};

void read_factors(const Warp& w, const MmaOp& op, const Slot* a, const Slot* b, Factors& f) {
  const unsigned bits = bits_of_type(op.a), per = bits == 64 ? 1 : 32 / bits;
  if (bits == 64) {
    for (unsigned r = 0; r < op.m; ++r)
      for (unsigned k = 0; k < op.k; ++k) f.a[r][k] = double_of(read_part(w, a, place_a(op.m, per, r, k), 64));
    for (unsigned k = 0; k < op.k; ++k)
      for (unsigned n = 0; n < op.n; ++n) f.b[k][n] = double_of(read_part(w, b, place_b(per, k, n), 64));
  } else if (op.d == Type::s32) {
    spread(
        w, a, b, op, per, bits, f.whole_a, f.whole_b, [&](u32 raw) { return whole_value(op.a, raw); },
        [&](u32 raw) { return whole_value(op.b, raw); });
  } else if (op.a == Type::f16) {
    const auto value = [](u32 raw) { return double{half_to_float(static_cast<u16>(raw))}; };
    spread(w, a, b, op, per, bits, f.a, f.b, value, value);
  } else if (op.a == Type::bf16) {
    const auto value = [](u32 raw) { return double{bfloat_to_float(static_cast<u16>(raw))}; };
    spread(w, a, b, op, per, bits, f.a, f.b, value, value);
  } else {
    spread(
        w, a, b, op, per, bits, f.a, f.b, [&](u32 raw) { return real_value(op.a, raw); },
        [&](u32 raw) { return real_value(op.b, raw); });
  }
}

// Row r of D, as bits.
void multiply_row(const Warp& w, const MmaOp& op, const Slot* c, const Factors& f, unsigned r, u64 (&out)[8]) {
  const unsigned bits = bits_of_type(op.c), per = bits == 16 ? 2 : 1;
  if (op.d == Type::s32) {
    for (unsigned n = 0; n < op.n; ++n) {
      s64 sum = static_cast<s32>(read_part(w, c, place_c(r, n, per), bits));
      for (unsigned k = 0; k < op.k; ++k) sum += f.whole_a[r][k] * f.whole_b[k][n];
      if (op.saturate) sum = std::clamp<s64>(sum, INT32_MIN, INT32_MAX);
      out[n] = static_cast<u32>(sum);
    }
    return;
  }
  double sums[8];
  row_sums(w, c, op, r, per, bits, f.a, f.b, sums);
  for (unsigned n = 0; n < op.n; ++n)
    out[n] = op.d == Type::f64   ? bits_of(sums[n])
             : op.d == Type::f32 ? bits_of(canonical(truncated(sums[n])))
                                 : encode(sums[n], kF16, 'n', false);
}

void write_part(Warp& w, const Slot* d, const Place& p, unsigned bits, u64 value) {
  if (bits == 64) {
    w.at<u64>(d[p.reg])[p.lane] = value;
  } else if (bits == 32) {
    w.at<u32>(d[p.reg])[p.lane] = static_cast<u32>(value);
  } else {
    u32& v = w.at<u32>(d[p.reg])[p.lane];
    v = p.part == 0 ? (v & 0xffff0000u) | static_cast<u32>(value) : (v & 0xffffu) | static_cast<u32>(value) << 16;
  }
}

const Inst* mma(const Inst& i, Warp& w, Mask mask) {
  // The members' slot is the first of the list.
  const Meeting m = meet(i, w, mask, i.e, Collective::mma, nullptr);
  if (!m.ready) return m.next;
  if (m.present != kFullMask)
    report_fault(i, w, m.present, Fault::divergent_barrier, "a matrix instruction needs all 32 lanes");
  const Slot* slots = i.slots;
  const MmaOp& op = *reinterpret_cast<const MmaOp*>(i.imm);
  if (w.follows) [[unlikely]]
    multiplied_undefined(w, op, slots, m.lanes);
  const Slot *d = slots + op.starts[0], *a = slots + op.starts[1], *b = slots + op.starts[2], *c = slots + op.starts[3];
  if (m.lanes == kFullMask && op.m == 16 && op.k == 16 && op.d == Type::f32) {
    if (op.a == Type::bf16) return multiply_bfloats(w, d, a, b, c), &i + 1;
    if (op.a == Type::f16) return multiply_halves(w, d, a, b, c), &i + 1;
  }
  static thread_local Factors factors;
  read_factors(w, op, a, b, factors);
  u64 out[16][8];  // D may lie where C does
  for (unsigned r = 0; r < op.m; ++r) multiply_row(w, op, c, factors, r, out[r]);
  const unsigned bits = bits_of_type(op.d), per = bits == 16 ? 2 : 1;
  for (unsigned r = 0; r < op.m; ++r)
    for (unsigned n = 0; n < op.n; ++n)
      if (const Place p = place_c(r, n, per); (m.lanes >> p.lane & 1) != 0) write_part(w, d, p, bits, out[r][n]);
  return &i + 1;
}

// Integers below a byte, and the quad-pair products of m8n8k4: element by element.
void unusual_product(Decoder& d, const MmaOp& op, bool columns_a, bool rows_b) {
  Product p;
  p.m = op.m, p.n = op.n, p.k = op.k;
  p.d = op.d, p.a = op.a, p.b = op.b, p.c = op.c;
  p.saturate = op.saturate;
  const bool halves = op.a == Type::f16, bits = op.a == Type::b1;
  const auto number = [](Type t) { return t == Type::f16 || t == Type::f32; };
  const auto quarter = [](Type t) { return t == Type::s4 || t == Type::u4; };
  bool good = false;
  if (halves) good = op.b == Type::f16 && number(op.d) && number(op.c) && (op.d == Type::f32 || op.c == Type::f16);
  else if (op.d == Type::s32 && op.c == Type::s32)
    good = bits ? op.b == Type::b1 && (op.k == 128 || op.m == 16) && op.k >= 128
                : quarter(op.b) && (op.k == 32 || (op.k == 64 && op.m == 16));
  if (!good) d.fail("this combination of shape and types is not supported");
  if ((columns_a || rows_b) && !halves) d.fail("only .row.col is supported");
  if (op.saturate && !quarter(op.a)) d.fail(".satfinite needs integers");
  if (bits) {
    const int how = d.accept_one({"and", "xor"});
    if (how < 0 || !d.accept("popc")) d.fail("needs .and.popc or .xor.popc");
    p.bits = how == 0 ? Product::and_popc : Product::xor_popc;
  }
  const auto of = [&](Role role, Type t, unsigned rows, unsigned columns, bool turned) {
    MatrixFragment f;
    f.role = role, f.quad_pairs = halves, f.turned = turned;
    f.bits = static_cast<std::uint8_t>(bits_of_type(t));
    f.rows = static_cast<u16>(rows), f.columns = static_cast<u16>(columns);
    f.registers = static_cast<u8>(f.matrices() * rows * columns * f.bits / 1024);
    return f;
  };
  p.fragment[0] = of(Role::c, op.d, op.m, op.n, false), p.fragment[3] = of(Role::c, op.c, op.m, op.n, false);
  p.fragment[1] = of(Role::a, op.a, op.m, op.k, columns_a), p.fragment[2] = of(Role::b, op.b, op.k, op.n, rows_b);
  emit_product(d, p);
}

// Whether PTX has the product of these types in this shape.
bool exists(const MmaOp& op) {
  const bool same = op.a == op.b, by_eight = op.k == 8 || op.k == 16;
  const bool floats = (op.d == Type::f32 || op.d == Type::f16) && op.c == op.d;
  const auto both = [&](Type one, Type other) {
    return (op.a == one || op.a == other) && (op.b == one || op.b == other);
  };
  const auto sums_in = [&](Type t) { return op.d == t && op.c == t; };
  if (op.a == Type::f16 && same) return floats && op.m == 16 && by_eight;
  if (op.a == Type::bf16 && same) return sums_in(Type::f32) && op.m == 16 && by_eight;
  if (op.a == Type::tf32 && same) return sums_in(Type::f32) && op.m == 16 && (op.k == 4 || op.k == 8);
  if (both(Type::e4m3, Type::e5m2)) return floats && op.m == 16 && (op.k == 16 || op.k == 32);
  if (both(Type::s8, Type::u8)) return sums_in(Type::s32) && (op.k == 16 || op.k == 32);
  if (op.a == Type::f64 && same) return sums_in(Type::f64) && ((op.m == 8 && op.k == 4) || op.m == 16) && op.k <= 16;
  return false;
}

// Shape, layouts and types. columns: of A and B.
void shape_and_types(Decoder& d, MmaOp& op, bool (&columns)[2]) {
  if (d.accept("sp") || d.accept("sp::ordered_metadata")) d.fail("sparse matrices are not supported");
  if (!d.accept("sync") || !d.accept("aligned")) d.fail("needs .sync.aligned");
  const int shape = d.accept_one({"m16n8k4", "m16n8k8", "m16n8k16", "m16n8k32", "m8n8k4", "m8n8k16", "m8n8k32",
                                  "m16n8k64", "m8n8k128", "m16n8k128", "m16n8k256"});
  static constexpr unsigned kShapes[][3] = {{16, 8, 4}, {16, 8, 8},  {16, 8, 16}, {16, 8, 32},  {8, 8, 4},   {8, 8, 16},
                                            {8, 8, 32}, {16, 8, 64}, {8, 8, 128}, {16, 8, 128}, {16, 8, 256}};
  if (shape < 0) d.fail("this shape is not supported");
  op.m = kShapes[shape][0], op.n = kShapes[shape][1], op.k = kShapes[shape][2];
  for (bool& by_columns : columns) {
    const auto layout = d.next();
    if (layout != "row" && layout != "col") d.fail("needs .row or .col twice");
    by_columns = layout == "col";
    d.accept(layout);
  }
  op.saturate = d.accept("satfinite");
  op.d = d.type(), op.a = d.type(), op.b = d.type(), op.c = d.type();
}

// The registers of D, A, B and C, one list behind the other.
std::vector<Slot> fragments(Decoder& d, MmaOp& op) {
  const unsigned bits = bits_of_type(op.a), register_bits = bits == 64 ? 64 : 32;
  const auto result_registers = [&](Type t) { return op.m * op.n / 32 * (t == Type::f16 ? 16 : 32) / 32; };
  op.counts[0] = result_registers(op.d), op.counts[3] = result_registers(op.c);
  op.counts[1] = op.m * op.k * bits / 32 / register_bits;
  op.counts[2] = op.k * op.n * bits / 32 / register_bits;
  std::vector<Slot> slots;
  for (unsigned k = 0; k < 4; ++k) {
    const auto& o = d.operand(k);
    const std::vector<Operand> parts = o.kind == Operand::list ? o.parts : std::vector<Operand>{o};
    if (parts.size() != op.counts[k])
      d.fail("operand " + std::to_string(k + 1) + " needs " + std::to_string(op.counts[k]) + " registers");
    op.starts[k] = static_cast<unsigned>(slots.size());
    const bool wide = k == 0 || k == 3 ? op.d == Type::f64 : bits == 64;
    const Type whole = wide ? Type::b64 : Type::b32;
    for (const auto& p : parts) slots.push_back(k == 0 ? d.destination(p, whole) : d.source(p, whole));
  }
  return slots;
}

void mma_decode(Decoder& d) {
  MmaOp op;
  bool columns[2];
  shape_and_types(d, op, columns);
  const bool quad_pairs = op.a == Type::f16 && op.m == 8;
  if (quad_pairs || op.a == Type::s4 || op.a == Type::u4 || op.a == Type::b1)
    return unusual_product(d, op, columns[0], !columns[1]);
  if (columns[0] || !columns[1]) d.fail("only .row.col is supported");
  if (!exists(op)) d.fail("this combination of shape and types is not supported");
  if (op.saturate && op.d != Type::s32) d.fail(".satfinite needs integers");
  d.end(4);
  std::vector<Slot> slots = fragments(d, op);
  const u32 full = kFullMask;
  const Slot members = d.constant(&full, 4);
  const Slot* kept = d.keep_slots(std::move(slots));
  const void* data = d.keep_value(op);
  d.need_mode({false, 'n'});
  Inst& i = d.emit(mma);
  i.e = members, i.slots = kept, i.imm = reinterpret_cast<std::int64_t>(data);
}

}  // namespace

std::span<const Opcode> matrix_opcodes() {
  static const Opcode table[] = {{"mma", mma_decode, InstructionClass::matrix}};
  return table;
}

}  // namespace machine
