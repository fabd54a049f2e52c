// ldmatrix, stmatrix and movmatrix: 8x8 tiles of 16-bit elements between shared memory and fragments.
#include <cstring>

#include "exec/fault.hpp"
#include "exec/undefined.hpp"
#include "isa/families.hpp"
#include "isa/matrix.hpp"
#include "isa/memory_decode.hpp"

namespace machine {
namespace {

using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;

struct TileOp {
  std::uint8_t base_width = 4, count = 1;
  bool transposed = false, generic = false, store = false;
  Slot registers[4] = {};
};

// Rows are 16 bytes; lane 8 k + r gives the address of row r of tile k.
bool rows(const Inst& i, Warp& w, const TileOp& op, Access& a, Mask& good) {
  a.kind = op.store ? AccessKind::store : AccessKind::load;
  a.space = Space::shared;
  a.generic = op.generic;
  a.width = 16;
  a.undefined = w.worker->undefined.get();
  a.lanes = op.count == 4 ? kFullMask : (Mask{1} << (8 * op.count)) - 1;
  form(w, op.generic ? shared_window_source(w, i.a, op.base_width, i.imm) : shared_source(w, i.a, op.base_width, i.imm),
       w.address(), a);
  good = admit(i, w, a);
  const u64 bytes = 16 * static_cast<unsigned>(std::popcount(good));
  (op.store ? w.worker->bytes_stored : w.worker->bytes_loaded) += bytes;
  return w.stop != Stop::aborted;
}

bool whole_warp(const Inst& i, Warp& w, const Meeting& m) {
  if (m.present == kFullMask) return true;
  report_fault(i, w, m.present, Fault::divergent_barrier, "a matrix instruction needs all 32 lanes");
  return false;
}

// The fragment of a tile whose rows lie at `address`; rows that are not `good` are zero. A lane holds two neighbours of
// a row, lanes going along the rows: the bytes of the tile, or of its transpose, in order.
#if MACHINE_AVX512
struct Transposition {
  alignas(64) u16 from[32];
};
constexpr Transposition kUpperHalf = [] {
  Transposition t{};
  for (unsigned n = 0; n < 32; ++n) t.from[n] = static_cast<u16>(n % 8 * 8 + n / 8);
  return t;
}();
void load_tile(const u64* address, Mask good, bool transposed, u32 (&out)[kWarp]) {
  auto row = [&](unsigned r) {
    return good >> r & 1 ? _mm_loadu_si128(reinterpret_cast<const __m128i*>(address[r])) : _mm_setzero_si128();
  };
  auto rows = [&](unsigned r) {
    const __m256i first = _mm256_set_m128i(row(r + 1), row(r)), second = _mm256_set_m128i(row(r + 3), row(r + 2));
    return _mm512_inserti64x4(_mm512_castsi256_si512(first), second, 1);
  };
  __m512i low = rows(0), high = rows(4);
  if (transposed) {
    const __m512i upper = _mm512_load_si512(kUpperHalf.from), lower = _mm512_add_epi16(upper, _mm512_set1_epi16(4));
    const __m512i turned = _mm512_permutex2var_epi16(low, upper, high);
    high = _mm512_permutex2var_epi16(low, lower, high);
    low = turned;
  }
  _mm512_store_si512(out, low);
  _mm512_store_si512(out + 16, high);
}
#else
void load_tile(const u64* address, Mask good, bool transposed, u32 (&out)[kWarp]) {
  u16 tile[8][8] = {}, turned[8][8];
  for (unsigned r = 0; r < 8; ++r)
    if (good >> r & 1) std::memcpy(tile[r], reinterpret_cast<const void*>(address[r]), 16);
  for (unsigned r = 0; r < 8; ++r)
    for (unsigned c = 0; c < 8; ++c) turned[c][r] = tile[r][c];
  std::memcpy(out, transposed ? turned : tile, sizeof out);
}
#endif

const Inst* ldmatrix(const Inst& i, Warp& w, Mask mask) {
  const Meeting m = meet(i, w, mask, i.e, Collective::matrix_load, nullptr);
  if (!m.ready) return m.next;
  whole_warp(i, w, m);
  const TileOp& op = *static_cast<const TileOp*>(i.data);
  Access a;
  Mask good;
  if (w.follows) [[unlikely]]
    before_tiles(i, w, op.registers, op.count, op.transposed, false, m.lanes);
  if (!rows(i, w, op, a, good)) return nullptr;
  for (unsigned k = 0; k < op.count; ++k) {
    alignas(64) u32 out[kWarp];
    load_tile(a.address + 8 * k, good >> (8 * k), op.transposed, out);
    blend(w.at<u32>(op.registers[k]), out, m.lanes);
  }
  if (a.undefined == nullptr || a.undefined->lanes == 0) [[likely]]
    return &i + 1;
  tiles_undefined(w, op.registers, op.count, op.transposed, m.lanes);
  return follow(w, &i + 1);
}

const Inst* stmatrix(const Inst& i, Warp& w, Mask mask) {
  const Meeting m = meet(i, w, mask, i.e, Collective::matrix_store, nullptr);
  if (!m.ready) return m.next;
  whole_warp(i, w, m);
  const TileOp& op = *static_cast<const TileOp*>(i.data);
  Access a;
  Mask good;
  if (w.follows) [[unlikely]]
    before_tiles(i, w, op.registers, op.count, op.transposed, true, m.lanes);
  if (!rows(i, w, op, a, good)) return nullptr;
  if (a.undefined != nullptr) a.undefined->lanes = 0;
  before_store(w, a, good);
  for (unsigned k = 0; k < op.count; ++k) {
    const u32* s = w.at<const u32>(op.registers[k]);
    u16 tile[8][8];
    for (unsigned l = 0; l < kWarp; ++l) {
      const unsigned g = group_of(l), q = 2 * quad_of(l);
      const u16 low = static_cast<u16>(s[l]), high = static_cast<u16>(s[l] >> 16);
      if (op.transposed) tile[q][g] = low, tile[q + 1][g] = high;
      else tile[g][q] = low, tile[g][q + 1] = high;
    }
    for (unsigned r = 0; r < 8; ++r)
      if (good >> (8 * k + r) & 1) std::memcpy(reinterpret_cast<void*>(a.address[8 * k + r]), tile[r], 16);
  }
  return &i + 1;
}

u64 bring_word(const Inst& i, const Warp& w, unsigned l) { return w.at<const u32>(i.a)[l]; }

const Inst* movmatrix(const Inst& i, Warp& w, Mask mask) {
  const Meeting m = meet(i, w, mask, i.e, Collective::matrix_move, bring_word);
  if (!m.ready) return m.next;
  whole_warp(i, w, m);
  if (w.follows) [[unlikely]]
    transposed_undefined(i, w, m);
  const u32* s = w.at<const u32>(i.a);
  u16 tile[8][8];
  for (unsigned l = 0; l < kWarp; ++l) {
    const u32 v = m.staged == nullptr || (m.lanes >> l & 1) ? s[l] : static_cast<u32>(m.staged[l]);
    tile[group_of(l)][2 * quad_of(l)] = static_cast<u16>(v);
    tile[group_of(l)][2 * quad_of(l) + 1] = static_cast<u16>(v >> 16);
  }
  u32* d = w.at<u32>(i.d);
  for_lanes(m.lanes, [&](unsigned l) {
    d[l] = tile[2 * quad_of(l)][group_of(l)] | static_cast<u32>(tile[2 * quad_of(l) + 1][group_of(l)]) << 16;
  });
  return &i + 1;
}

void tiles(Decoder& d, bool store) {
  TileOp op;
  op.store = store;
  if (!d.accept("sync") || !d.accept("aligned")) d.fail("needs .sync.aligned");
  if (!d.accept("m8n8")) d.fail("only .m8n8 is supported");
  const int count = d.accept_one({"x1", "x2", "x4"});
  if (count < 0) d.fail("needs .x1, .x2 or .x4");
  op.count = static_cast<std::uint8_t>(1 << count);
  op.transposed = d.accept("trans");
  op.generic = !d.accept("shared") && !d.accept("shared::cta");
  d.type({Type::b16});
  d.end(2);
  const auto& list = d.operand(store ? 1 : 0);
  std::vector<Operand> parts;
  if (list.kind == Operand::list) parts = list.parts;
  else parts.push_back(list);
  if (parts.size() != op.count) d.fail("needs " + std::to_string(op.count) + " registers");
  for (std::size_t k = 0; k < parts.size(); ++k)
    op.registers[k] = store ? d.source(parts[k], Type::b32) : d.destination(parts[k], Type::b32);
  const auto address = d.address(store ? 0 : 1);
  Via via = op.generic ? Via::generic : Via::shared;
  check_named_space(d, address, via);
  if (via == Via::shared) op.generic = false;
  op.base_width = static_cast<std::uint8_t>(address.width);
  const u32 full = kFullMask;
  const Slot members = d.constant(&full, 4);
  const void* data = d.keep_value(op);
  Inst& i = d.emit(store ? stmatrix : ldmatrix);
  i.a = address.base, i.imm = address.offset, i.e = members, i.data = data;
}

void movmatrix_decode(Decoder& d) {
  if (!d.accept("sync") || !d.accept("aligned") || !d.accept("m8n8") || !d.accept("trans"))
    d.fail("only .sync.aligned.m8n8.trans exists");
  d.type({Type::b16});
  d.end(2);
  const Slot a = d.source(1, Type::b32), r = d.destination(0, Type::b32);
  const u32 full = kFullMask;
  const Slot members = d.constant(&full, 4);
  Inst& i = d.emit(movmatrix);
  i.a = a, i.d = r, i.e = members;
}

}  // namespace

std::span<const Opcode> matrix_move_opcodes() {
  static const Opcode table[] = {{"ldmatrix", [](Decoder& d) { tiles(d, false); }, InstructionClass::load_shared},
                                 {"stmatrix", [](Decoder& d) { tiles(d, true); }, InstructionClass::store_shared},
                                 {"movmatrix", movmatrix_decode, InstructionClass::matrix}};
  return table;
}

}  // namespace machine
