// Undefined bits between registers and memory. What memory holds is the checks' to know: bits come and go with an
// access.
#include <cstring>

#include "exec/undefined.hpp"

namespace machine {
namespace {

using u8 = std::uint8_t;
using u64 = std::uint64_t;

// Bytes [at, at + bytes) of what lane `l` stores.
void put(Undefined& u, unsigned l, unsigned at, unsigned bytes, u64 bits, const Origin& origin) {
  if (bits == 0) return;
  if ((u.lanes >> l & 1) == 0) u.bits[l].fill(0), u.origins[l] = origin;
  u.lanes |= Mask{1} << l;
  for (unsigned b = 0; b < bytes; ++b) u.bits[l][at + b] |= static_cast<u8>(bits >> (8 * b));
}
u64 get(const Undefined& u, unsigned l, unsigned at, unsigned bytes) {
  u64 bits = 0;
  for (unsigned b = 0; b < bytes; ++b) bits |= u64{u.bits[l][at + b]} << (8 * b);
  return bits;
}
u64 low_bytes(u64 v, unsigned bytes) { return bytes >= 8 ? v : v & ((u64{1} << (8 * bytes)) - 1); }

// A register goes to bytes `at` of what its lanes store; where nobody follows it in memory, storing it is a use.
void give(const Inst& i, Warp& w, Slot s, Mask lanes, unsigned at, unsigned bytes) {
  const UndefinedSlot* u = undefined_of(w, s);
  if (u == nullptr || (u->lanes & lanes) == 0) return;
  if (!w.worker->memory_undefined) return require_defined(i, w, s, lanes, UndefinedUse::stored);
  for_lanes(u->lanes & lanes,
            [&](unsigned l) { put(*w.worker->undefined, l, at, bytes, low_bytes(u->bits[l], bytes), u->origins[l]); });
}

// The row of a tile, among the 32 that lanes give, and the byte in it of half `h` of what lane `l` holds.
struct TilePlace {
  unsigned row, byte;
};
TilePlace tile_place(unsigned l, unsigned h, bool transposed) {
  const unsigned group = l / 4, pair = l % 4 * 2 + h;
  return transposed ? TilePlace{pair, 2 * group} : TilePlace{group, 2 * pair};
}

}  // namespace

void before_memory(const Inst& i, Warp& w, const MemoryOp& op, Mask mask) {
  require_defined(i, w, i.a, mask, UndefinedUse::address);
  w.worker->undefined->lanes = 0;
  for (unsigned c = 0; c < op.components; ++c) {
    if (op.kind == AccessKind::load) set_defined(*w.frame, op.registers[c], mask);
    else give(i, w, op.registers[c], mask, c * op.element, op.element);
  }
}

void loaded_undefined(Warp& w, const MemoryOp& op) {
  Undefined& u = *w.worker->undefined;
  for_lanes(u.lanes, [&](unsigned l) {
    for (unsigned c = 0; c < op.components; ++c) {
      u64 bits = get(u, l, c * op.element, op.element);
      if (op.sign && op.element < 8 && (bits >> (8 * op.element - 1) & 1) != 0) bits |= ~u64{0} << (8 * op.element);
      set_undefined(*w.frame, op.registers[c], l, low_bytes(bits, op.register_width), u.origins[l]);
    }
  });
  u.lanes = 0;
}

void before_atomic(const Inst& i, Warp& w, const MemoryOp& op, const Slot* operands, const Slot* results, Mask mask) {
  require_defined(i, w, i.a, mask, UndefinedUse::address);
  w.worker->undefined->lanes = 0;
  for (unsigned c = 0; c < op.components; ++c) give(i, w, operands[c], mask, c * op.element, op.element);
  if (op.kind != AccessKind::atomic) return;
  for (unsigned c = 0; c < op.components; ++c) set_defined(*w.frame, results[c], mask);
}

namespace {

u64 element_at(const Warp& w, Slot s, unsigned bytes, unsigned l) {
  u64 v = 0;
  std::memcpy(&v, w.at<const std::byte>(s) + l * bytes, bytes);
  return v;
}

}  // namespace

void note_comparand(Comparand& comparand, const Warp& w, const MemoryOp& op, Mask mask) {
  const unsigned parts = op.element == 8 && op.width == 16 ? 2 : 1;
  for (unsigned c = 0; c < parts; ++c) {
    for_lanes(mask, [&](unsigned l) { comparand.value[c][l] = element_at(w, op.registers[c], op.element, l); });
    const UndefinedSlot* u = w.follows ? undefined_of(w, op.registers[c]) : nullptr;
    if (u == nullptr) continue;
    for_lanes(u->lanes & mask, [&](unsigned l) {
      if ((comparand.lanes >> l & 1) == 0) comparand.origins[l] = u->origins[l];
      comparand.bits[c][l] = low_bytes(u->bits[l], op.element);
    });
    comparand.lanes |= u->lanes & mask;
  }
}

void swap_undefined(const Inst& i, Warp& w, const MemoryOp& op, const Comparand& comparand, const Slot* results,
                    Mask mask) {
  const Undefined& u = *w.worker->undefined;
  const Mask found = u.lanes & mask;
  for_lanes((comparand.lanes | found) & mask, [&](unsigned l) {
    const bool guess = (comparand.lanes >> l & 1) != 0, memory = (found >> l & 1) != 0;
    bool differ = false, open = false;
    for (unsigned c = 0; c < op.components; ++c) {
      const u64 bits = comparand.bits[c][l] | (memory ? get(u, l, c * op.element, op.element) : 0);
      open |= bits != 0;
      differ |= ((comparand.value[c][l] ^ element_at(w, results[c], op.element, l)) & ~bits) != 0;
    }
    if (differ || !open) return;
    const Origin& origin = guess ? comparand.origins[l] : u.origins[l];
    const bool of_this_place =
        memory ? origin.kind == u.origins[l].kind && origin.address == u.origins[l].address
               : origin.kind == Origin::Kind::memory && origin.address - w.address_room[l] < op.width;
    if (guess && of_this_place) return;
    report_undefined(i, w, UndefinedUse::swap, Mask{1} << l, origin);
  });
}

void atomic_undefined(Warp& w, const MemoryOp& op, const Slot* results) {
  Undefined& u = *w.worker->undefined;
  if (op.kind == AccessKind::atomic)
    for (unsigned c = 0; c < op.components; ++c)
      for_lanes(u.lanes, [&](unsigned l) {
        set_undefined(*w.frame, results[c], l, get(u, l, c * op.element, op.element), u.origins[l]);
      });
  u.lanes = 0;
}

void area_undefined(Warp& w, const MemoryOp& op, Slot area, std::int64_t offset, Mask mask) {
  for (unsigned c = 0; c < op.components; ++c)
    for (unsigned b = 0; b < op.element; b += 4) {
      const auto at = static_cast<unsigned>(offset) + c * op.element + b;
      const unsigned bytes = std::min<unsigned>(op.element, 4), shift = 8 * (at & 3);
      const Slot word = area + at / 4 * 128, reg = op.registers[c];
      const u64 field = low_bytes(~u64{0}, bytes);
      const UndefinedSlot* from = undefined_of(w, op.kind == AccessKind::load ? word : reg);
      for_lanes(mask, [&](unsigned l) {
        const bool open = from != nullptr && (from->lanes >> l & 1) != 0;
        const Slot into = op.kind == AccessKind::load ? reg : word;
        const UndefinedSlot* to = undefined_of(w, into);
        const bool was = to != nullptr && (to->lanes >> l & 1) != 0;
        const u64 old = was ? to->bits[l] : 0;
        u64 bits;
        if (op.kind == AccessKind::load) {
          const u64 part = open ? from->bits[l] >> shift & field : 0;
          bits = (b == 0 ? 0 : old) | part << (8 * b);
          if (op.sign && op.element < 8 && (part >> (8 * bytes - 1) & 1) != 0)
            bits = low_bytes(bits | ~u64{0} << (8 * op.element), op.register_width);
        } else {
          bits = (old & ~(field << shift)) | (open ? from->bits[l] >> (8 * b) & field : 0) << shift;
        }
        set_undefined(*w.frame, into, l, bits, open ? from->origins[l] : was ? to->origins[l] : Origin{});
      });
    }
}

void before_tiles(const Inst& i, Warp& w, const Slot* registers, unsigned count, bool transposed, bool store,
                  Mask lanes) {
  require_defined(i, w, i.a, lanes & (count == 4 ? kFullMask : (Mask{1} << (8 * count)) - 1), UndefinedUse::address);
  Undefined& out = *w.worker->undefined;
  out.lanes = 0;
  for (unsigned k = 0; k < count; ++k) {
    if (!store) {
      set_defined(*w.frame, registers[k], lanes);
      continue;
    }
    const UndefinedSlot* u = undefined_of(w, registers[k]);
    if (u == nullptr) continue;
    if (!w.worker->memory_undefined) {
      require_defined(i, w, registers[k], lanes, UndefinedUse::stored);
      continue;
    }
    for_lanes(u->lanes & lanes, [&](unsigned l) {
      for (unsigned h = 0; h < 2; ++h) {
        const TilePlace p = tile_place(l, h, transposed);
        put(out, 8 * k + p.row, p.byte, 2, u->bits[l] >> (16 * h) & 0xffff, u->origins[l]);
      }
    });
  }
}

void tiles_undefined(Warp& w, const Slot* registers, unsigned count, bool transposed, Mask lanes) {
  Undefined& u = *w.worker->undefined;
  for (unsigned k = 0; k < count; ++k)
    for_lanes(lanes, [&](unsigned l) {
      u64 bits = 0;
      const Origin* origin = nullptr;
      for (unsigned h = 0; h < 2; ++h) {
        const TilePlace p = tile_place(l, h, transposed);
        const unsigned row = 8 * k + p.row;
        if ((u.lanes >> row & 1) == 0) continue;
        const u64 half = get(u, row, p.byte, 2);
        if (half != 0 && origin == nullptr) origin = &u.origins[row];
        bits |= half << (16 * h);
      }
      if (origin != nullptr) set_undefined(*w.frame, registers[k], l, bits, *origin);
    });
  u.lanes = 0;
}

}  // namespace machine
