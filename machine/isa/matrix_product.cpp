#include "isa/matrix_product.hpp"

#include "exec/fault.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <vector>

#include "exec/undefined.hpp"
#include "isa/convert.hpp"
#include "isa/format.hpp"
#include "isa/matrix.hpp"
#include "ptx/decoder.hpp"

namespace machine {

using u8 = std::uint8_t;
using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;
using s64 = std::int64_t;

// Products are exact; a step of k is summed in double and rounded once to the accumulator (ops_matrix.cpp says why).
double real_value(Type t, u64 raw) {
  switch (t) {
    case Type::f16: return half_to_float(static_cast<u16>(raw));
    case Type::bf16: return bfloat_to_float(static_cast<u16>(raw));
    case Type::tf32: return float_of(static_cast<u32>(raw) & 0xffffe000u);
    case Type::e4m3: return decode(static_cast<u32>(raw), kE4m3);
    case Type::e5m2: return decode(static_cast<u32>(raw), kE5m2);
    case Type::f32: return float_of(static_cast<u32>(raw));
    default: return double_of(raw);
  }
}
s64 whole_value(Type t, u64 raw) {
  switch (t) {
    case Type::s8: return static_cast<std::int8_t>(raw);
    case Type::s4: return static_cast<s64>(raw & 15) - ((raw & 8) != 0 ? 16 : 0);
    case Type::s32: return static_cast<std::int32_t>(raw);
    default: return static_cast<s64>(raw);
  }
}

unsigned bits_of_type(Type t) {
  switch (t) {
    case Type::f64: return 64;
    case Type::f32:
    case Type::tf32:
    case Type::s32: return 32;
    case Type::f16:
    case Type::bf16: return 16;
    case Type::s4:
    case Type::u4: return 4;
    case Type::b1: return 1;
    default: return 8;
  }
}

Element element_of(const MatrixFragment& f, unsigned lane, unsigned reg, unsigned part) {
  if (f.mirrored) {
    MatrixFragment other = f;
    other.mirrored = false;
    other.role = f.role == Role::a ? Role::b : f.role == Role::b ? Role::a : Role::c;
    std::swap(other.rows, other.columns);
    const Element e = element_of(other, lane, reg, part);
    return {e.column, e.row, e.matrix};
  }
  const unsigned group = group_of(lane), quad = quad_of(lane), per = f.per();
  if (f.quad_pairs) {
    const unsigned upper = lane < 16 ? 0 : 4, index = reg * per + part, line = quad + upper, matrix = lane / 4 % 4;
    if (f.role == Role::a) return f.turned ? Element{index + upper, quad, matrix} : Element{line, index, matrix};
    if (f.role == Role::b) return f.turned ? Element{quad, index + upper, matrix} : Element{index, line, matrix};
    if (f.bits == 16) return {line, index, matrix};
    return {(quad & 1) + (index & 2) + upper, (index & 4) + (quad & 2) + (index & 1), matrix};
  }
  switch (f.role) {
    case Role::a: {
      const unsigned blocks = std::min(f.rows / 8u, 2u), tiles = f.rows / (8 * blocks),
                     each = blocks * (f.columns / (per * 4));
      const unsigned tile = reg / each % tiles, rest = reg % each;
      return {tile * 16 + group + 8 * (rest % blocks), quad * per + part + rest / blocks * per * 4, 0};
    }
    case Role::b: {
      const unsigned each = f.rows / (per * 4), tiles = f.columns / 8u, tile = reg / each % tiles, rest = reg % each;
      return {quad * per + part + rest * per * 4, tile * 8 + group, 0};
    }
    default: {
      const unsigned blocks = std::min(f.rows / 8u, 2u), each = 2 * blocks / per, across = f.columns / 8u;
      const unsigned tile = reg / each, index = reg % each * per + part;
      return {tile / across * 16 + group + index / 2 * 8, tile % across * 8 + quad * 2 + index % 2, 0};
    }
  }
}

namespace {

u64 ones(unsigned bits) { return bits >= 64 ? ~u64{0} : (u64{1} << bits) - 1; }

u64 read_register(const Warp& w, Slot s, unsigned lane, unsigned bits) {
  return bits == 64 ? w.at<const u64>(s)[lane] : w.at<const u32>(s)[lane];
}

// f(element, lane, register, part) for all that a fragment holds.
template <class F>
void each_element(const MatrixFragment& f, F visit) {
  for (unsigned reg = 0; reg < f.registers; ++reg)
    for (unsigned lane = 0; lane < kWarp; ++lane)
      for (unsigned part = 0; part < f.per(); ++part) visit(element_of(f, lane, reg, part), lane, reg, part);
}

// The matrices of a fragment, raw: matrix behind matrix, row behind row.
void gather(const Warp& w, const MatrixFragment& f, const Slot* slots, std::vector<u64>& to) {
  to.assign(std::size_t{f.matrices()} * f.rows * f.columns, 0);
  each_element(f, [&](Element e, unsigned lane, unsigned reg, unsigned part) {
    to[(e.matrix * f.rows + e.row) * f.columns + e.column] =
        read_register(w, slots[reg], lane, f.bits) >> (f.bits == 64 ? 0 : f.bits * part) & ones(f.bits);
  });
}

void scatter(Warp& w, const MatrixFragment& f, const Slot* slots, Mask lanes, const std::vector<u64>& from) {
  each_element(f, [&](Element e, unsigned lane, unsigned reg, unsigned part) {
    if ((lanes >> lane & 1) == 0) return;
    const u64 v = from[(e.matrix * f.rows + e.row) * f.columns + e.column];
    if (f.bits == 64) {
      w.at<u64>(slots[reg])[lane] = v;
      return;
    }
    u32& r = w.at<u32>(slots[reg])[lane];
    const u32 field = static_cast<u32>(ones(f.bits)) << (f.bits == 32 ? 0 : f.bits * part);
    r = (r & ~field) | (static_cast<u32>(v) << (f.bits == 32 ? 0 : f.bits * part) & field);
  });
}

u64 rounded_to(Type t, double v) {
  if (t == Type::f64) return bits_of(v);
  if (t == Type::f32) return bits_of(canonical(truncated(v)));
  return encode(v, kF16, 'n', false);
}

void multiply(const Product& p, const std::vector<u64>& a, const std::vector<u64>& b, const std::vector<u64>& c,
              std::vector<u64>& d) {
  d.resize(c.size());
  const bool integers = p.d == Type::s32;
  for (std::size_t place = 0; place < c.size(); ++place) {
    const std::size_t matrix = place / (p.m * p.n), row = place / p.n % p.m, column = place % p.n;
    const u64* left = a.data() + (matrix * p.m + row) * p.k;
    const u64* right = b.data() + matrix * p.k * p.n + column;
    if (integers) {
      s64 sum = whole_value(Type::s32, c[place]);
      for (unsigned k = 0; k < p.k; ++k) {
        const u64 x = left[k], y = right[std::size_t{k} * p.n];
        sum += p.bits == Product::and_popc   ? static_cast<s64>(x & y)
               : p.bits == Product::xor_popc ? static_cast<s64>(x ^ y)
                                             : whole_value(p.a, x) * whole_value(p.b, y);
      }
      if (p.saturate) sum = std::clamp<s64>(sum, INT32_MIN, INT32_MAX);
      d[place] = static_cast<u32>(sum);
    } else {
      double sum = real_value(p.c, c[place]);
      for (unsigned k = 0; k < p.k; ++k)
        sum = __builtin_fma(real_value(p.a, left[k]), real_value(p.b, right[std::size_t{k} * p.n]), sum);
      d[place] = rounded_to(p.d, sum);
    }
  }
}

// An element of D needs its row of A, its column of B and its element of C.
void product_undefined(Warp& w, const Product& p, const Slot* slots, Mask lanes) {
  const auto gathered = [&](unsigned operand, auto key) {
    std::vector<const Origin*> origins(std::size_t{p.fragment[operand].matrices()} * 256);
    each_element(p.fragment[operand], [&](Element e, unsigned lane, unsigned reg, unsigned part) {
      const MatrixFragment& f = p.fragment[operand];
      const UndefinedSlot* u = undefined_of(w, slots[p.starts[operand] + reg]);
      if (u == nullptr || (u->lanes >> lane & 1) == 0) return;
      if ((u->bits[lane] >> (f.bits == 64 ? 0 : f.bits * part) & ones(f.bits)) != 0)
        origins[key(e)] = &u->origins[lane];
    });
    return origins;
  };
  const auto of_row = gathered(1, [&](Element e) { return e.matrix * p.m + e.row; });
  const auto of_column = gathered(2, [&](Element e) { return e.matrix * p.n + e.column; });
  const auto of_sum = gathered(3, [&](Element e) { return (e.matrix * p.m + e.row) * p.n + e.column; });
  struct Result {
    u64 bits = 0;
    Origin origin;
  };
  const MatrixFragment& to = p.fragment[0];
  std::vector<Result> results(std::size_t{to.registers} * kWarp);
  each_element(to, [&](Element e, unsigned lane, unsigned reg, unsigned part) {
    const Origin* origin = of_row[e.matrix * p.m + e.row];
    if (origin == nullptr) origin = of_column[e.matrix * p.n + e.column];
    if (origin == nullptr) origin = of_sum[(e.matrix * p.m + e.row) * p.n + e.column];
    if (origin == nullptr) return;
    Result& r = results[reg * kWarp + lane];
    r.bits |= ones(to.bits) << (to.bits >= 32 ? 0 : to.bits * part);
    r.origin = *origin;
    r.origin.computed = true;
  });
  for (unsigned reg = 0; reg < to.registers; ++reg)
    for_lanes(lanes, [&](unsigned l) {
      set_undefined(*w.frame, slots[p.starts[0] + reg], l, results[reg * kWarp + l].bits,
                    results[reg * kWarp + l].origin);
    });
}

void by_tiles(const Warp& w, const Product& p, const Slot* slots) {
  const Slot *d = slots + p.starts[0], *a = slots + p.starts[1], *b = slots + p.starts[2], *c = slots + p.starts[3];
  if (p.fragment[0].mirrored) std::swap(a, b);
  for (unsigned down = 0; down < p.tiles_down; ++down)
    for (unsigned across = 0; across < p.tiles_across; ++across) {
      const unsigned at = 4 * (down * p.tiles_across + across);
      (p.a == Type::f16 ? multiply_halves : multiply_bfloats)(w, d + at, a + 4 * down, b + 2 * across, c + at);
    }
}

const Inst* product(const Inst& i, Warp& w, Mask mask) {
  const Meeting m = meet(i, w, mask, i.e, Collective::mma, nullptr);
  if (!m.ready) return m.next;
  if (m.present != kFullMask)
    report_fault(i, w, m.present, Fault::divergent_barrier, "a matrix instruction needs all 32 lanes");
  const Slot* slots = i.slots;
  const Product& p = *reinterpret_cast<const Product*>(i.imm);
  if (w.follows) [[unlikely]]
    product_undefined(w, p, slots, m.lanes);
  if (p.tiles_down != 0 && m.lanes == kFullMask) return by_tiles(w, p, slots), &i + 1;
  thread_local auto& scratch = *new std::array<std::vector<u64>, 4>;  // outlives the thread's destructors
  auto& [a, b, c, d] = scratch;
  gather(w, p.fragment[1], slots + p.starts[1], a);
  gather(w, p.fragment[2], slots + p.starts[2], b);
  gather(w, p.fragment[3], slots + p.starts[3], c);
  multiply(p, a, b, c, d);
  scatter(w, p.fragment[0], slots + p.starts[0], m.lanes, d);
  return &i + 1;
}

}  // namespace

void emit_product(Decoder& d, Product p) {
  d.end(4);
  std::vector<Slot> slots;
  for (const unsigned k : {1u, 2u, 3u, 0u}) {
    const MatrixFragment& f = p.fragment[k];
    const Operand& o = d.operand(k);
    const std::vector<Operand> parts = o.kind == Operand::list ? o.parts : std::vector<Operand>{o};
    if (parts.size() != f.registers)
      d.fail("operand " + std::to_string(k + 1) + " needs " + std::to_string(f.registers) + " registers");
    p.starts[k] = static_cast<unsigned>(slots.size());
    const Type whole = f.bits == 64 ? Type::b64 : Type::b32;
    for (const auto& part : parts) slots.push_back(k == 0 ? d.destination(part, whole) : d.source(part, whole));
  }
  // Tile by tile only where no tile's result is an operand of another one.
  const auto first = slots.begin(), results = first + p.starts[0];
  for (unsigned k = 0; k < p.fragment[0].registers; ++k) {
    const auto same = std::find(first, results, results[k]);
    if (same != results && same != first + p.starts[3] + k) p.tiles_down = 0;
  }
  const u32 full = kFullMask;
  const Slot members = d.constant(&full, 4);
  const Slot* kept = d.keep_slots(std::move(slots));
  const void* data = d.keep_value(p);
  d.need_mode({false, p.rounding});
  Inst& i = d.emit(product);
  i.e = members, i.slots = kept, i.imm = reinterpret_cast<std::int64_t>(data);
}

}  // namespace machine
